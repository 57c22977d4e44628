"""An example or two for the help of each command."""

from typing import Any

EXAMPLES = {
    "train": (
        "zerogap train flats.csv --target rent --loss squared --out flats.zg --report flats.html",
        "zerogap train orders.xlsx --id order --dates --impute median --loss logistic",
        "zerogap train reviews.csv --text review --cv 5 --loss logistic --out reviews.zg",
    ),
    "show": ("zerogap show flats.zg --top 10", "zerogap show flats.zg --csv > coefficients.csv"),
    "predict": (
        "zerogap predict flats.zg new.csv --out predictions.csv",
        "zerogap predict orders.zg new.xlsx --threshold 0.3",
    ),
    "certify": ("zerogap certify flats.zg flats.csv",),
    "audit": (
        "zerogap audit heart.model heart.svm --C 10",
        "zerogap audit coefficients.csv flats.csv --loss squared --lam 0.1 --tol 1e-6",
    ),
    "prove": ("zerogap prove flats.zg flats.csv --out flats.proof",),
    "verify": ("zerogap verify flats.proof flats.csv",),
    "export": ("zerogap export flats.zg flats.onnx",),
    "forget": (
        "zerogap forget a.zg --rows rows.txt --data a.csv --out b.zg --left b.csv",
        "zerogap certify b.zg b.csv",
    ),
    "compare": ("zerogap compare a9a --loss logistic --out comparison",),
    "sweep": ("zerogap sweep a9a --lam 1e-6:1e-2:5 --out sweep.png",),
    "path": ("zerogap path a9a --loss logistic --out path.png",),
    "bounds": ("zerogap bounds --n 10000 --loss hinge",),
    "reproduce": ("zerogap reproduce --out report",),
    "practical": ("zerogap practical --dataset mini-mnist --opt bcfw",),
    "warmup": ("zerogap warmup",),
    "data": ("zerogap data list", "zerogap data convert big.csv big.store --max-memory 600MB"),
    "convert": (
        "zerogap data convert big.csv big.store --max-memory 600MB",
        "zerogap train big.store --loss logistic --max-memory 600MB",
    ),
    "list_": ("zerogap data list --json",),
    "info_": ("zerogap data info a9a",),
    "get": ("zerogap data get a9a",),
    "zerogap": (
        "zerogap train table.csv --target price --loss squared --out model.zg --report page.html",
        "zerogap predict model.zg new.csv",
    ),
}


def epilog(name: str) -> str | None:
    """Return the examples of a command, each on a line of its own."""
    found = EXAMPLES.get(name)
    if found is None:
        return None
    lines = "\n".join(f"  {example}" for example in found)
    return f"\b\nExample{'s' if len(found) > 1 else ''}:\n{lines}"


def add_examples(app: Any) -> None:
    """Give all commands of the application their examples, those of `zerogap data` too."""
    group = app.registered_groups[0]
    group.epilog = epilog("data")
    for info in [*app.registered_commands, *group.typer_instance.registered_commands]:
        info.epilog = epilog(info.callback.__name__ if info.callback else "")
