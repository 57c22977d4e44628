"""The worked examples of docs/command-line.md, made by seed: files and options."""

import csv
import datetime
import random

import numpy as np

TRAIN = {
    "income.data": ("--names", "age,work,weight,city,gain,income", "--target", "income"),
    "flats.csv": ("--target", "Miete", "--loss", "squared"),
    "orders.xlsx": ("--target", "returned", "--id", "order", "--dates", "--impute", "median"),
    "reviews.csv": ("--text", "review"),
    "hashed.csv": ("--text", "review", "--text-method", "hashed", "--max-words", "500"),
}


def write(folder, name):
    """Write one of the files, and return its path."""
    path = folder / name
    _WRITERS[name](path)
    return path


def _income(path):
    """As the adult data are downloaded: no header, blanks after commas, ? for missing."""
    rng = np.random.default_rng(1)
    lines = []
    for _ in range(500):
        age, gain = rng.integers(17, 90), rng.choice([0, 0, 0, 2174, 7688])
        work, city = rng.choice(["State-gov", "Private", "?"]), rng.choice(["Rome", "Bonn", "?"])
        rich = 0.05 * (age - 40) + gain / 3000 + (work == "Private") + rng.normal() > 0.8
        label = ">50K" if rich else "<=50K"
        lines.append(f"{age}, {work}, {rng.integers(10000, 400000)}, {city}, {gain}, {label}\n")
    path.write_text("".join(lines))


def _flats(path):
    """Semicolons, decimal commas, points between thousands, Latin-1."""
    rng = np.random.default_rng(0)
    lines = ["Größe;Zimmer;Straße;Balkon;Baujahr;Miete"]
    for _ in range(400):
        size, year = rng.uniform(20, 140), int(rng.integers(1900, 2024))
        street = rng.choice(["Hauptstraße", "Bäckerweg", "Am Markt"])
        rent = 8 * size + 150 * (street == "Am Markt") + 1.2 * (year - 1960) + rng.normal(0, 40)
        money = f"{rent:,.2f}".translate(str.maketrans(",.", ".,"))
        comma = f"{size:.1f}".replace(".", ",")
        lines.append(
            f"{comma};{int(size // 25) + 1};{street};{rng.choice(['ja', 'nein'])};{year};{money}"
        )
    path.write_text("\n".join(lines) + "\n", encoding="latin-1")


def _orders(path):
    """A spreadsheet with dates and missing cells."""
    import openpyxl

    rng = np.random.default_rng(2)
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["order", "date", "amount", "channel", "express", "returned"])
    for k in range(300):
        day = datetime.date(2023, 1, 1) + datetime.timedelta(days=int(rng.integers(0, 700)))
        amount, channel = float(rng.gamma(2, 40)), str(rng.choice(["web", "shop", "phone"]))
        back = (amount > 90) + (channel == "web") + (day.month == 12) + rng.normal(0, 0.8) > 1.2
        gaps = rng.random(2)
        amount = None if gaps[0] < 0.08 else round(amount, 2)
        channel = None if gaps[1] < 0.05 else channel
        label = "yes" if back else "no"
        sheet.append([f"O{k:05d}", day, amount, channel, bool(rng.integers(2)), label])
    book.save(path)


def _reviews(path):
    """A column of text."""
    draw = random.Random(0)
    good = ["great", "lovely", "excellent", "perfect", "quick", "friendly", "happy", "solid"]
    bad = ["broken", "late", "awful", "poor", "rude", "noisy", "refund", "useless"]
    plain = ["the", "box", "arrived", "with", "a", "cable", "and", "it", "was", "blue", "order"]
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["review", "stars", "label"])
        for _ in range(300):
            happy = draw.random() < 0.5
            words = draw.choices(plain, k=12) + draw.choices(good if happy else bad, k=2)
            words += draw.choices(good + bad, k=1)
            draw.shuffle(words)
            text = " ".join(words).capitalize() + "."
            writer.writerow([text, draw.randint(1, 5), "pos" if happy else "neg"])


_WRITERS = {
    "income.data": _income,
    "flats.csv": _flats,
    "orders.xlsx": _orders,
    "reviews.csv": _reviews,
    "hashed.csv": _reviews,
}
