"""Chapter S1: its pictures: photographs, crops, spectra and projections."""

from __future__ import annotations

from zerogap.lab import Arm, Data, Experiment, Gallery, Lines, Table
from zerogap.lab.chapters import s1_tables as tables
from zerogap.lab.chapters.s1_cells import crop_check, pictures, projections, source_check, spectrum
from zerogap.lab.chapters.s1_tables import EPS

IMAGES = Data("bloodcells-images", label="pixels")


LABELS = {
    "cpu_seconds": "CPU time of the updates, seconds",
    "test_error": "test error rate",
    "primal": "train loss P(w)",
    "rows": "rows n",
    "to_eps": f"updates until P(w) - min P <= {EPS:g}",
    "singular_value": "singular value",
    "share": "share of the variance",
}


OTHER_CROPS = (
    "The crops come from the same pictures by the same steps, but with a gaussian blur where the "
    "report's code had a mean-shift filter (30 minutes of work): they are not its crops. The "
    "filter alone does not explain the other test error: with windows found by it for 499 training "
    "and 249 test pictures SDCA errs in 15.7 %, with ours in 16.5 % (-0.8 points, interval -2.4 to "
    "+0.8). The cause of the report's 26 % is not known. The windows are compared in S1-crops."
)


PICTURES = Experiment(
    id="S1-pictures",
    title="From photographs to crops",
    question="What do the data look like, and how are the cells cut out?",
    data=(IMAGES,),
    seeds=(0,),
    function=pictures,
    figures=(
        Gallery(
            id="S1-fig1",
            title="Pictures of both classes",
            caption="Five test photographs each, before they were rotated and mirrored.",
            covers=("S1-18",),
            where={"figure": "examples"},
            by="strip",
        ),
        Gallery(
            id="S1-fig4",
            title="The steps of a crop",
            caption="Black corners come from the rotations that made many pictures of each "
            "photograph. The darkest 2 % of the pixels are taken for the nucleus; specks go in the "
            "opening; the window is centred on what is left.",
            covers=("S1-22",),
            where={"figure": "steps"},
            by="strip",
        ),
        Gallery(
            id="S1-fig5",
            title="Crops of both classes, in negative",
            caption="Eight random crops each: rows of 14 400 grey values.",
            covers=("S1-22",),
            where={"figure": "crops"},
            by="strip",
        ),
    ),
    original={"crops": "about 30 minutes for 6226 pictures, kept as text files"},
    differs=(OTHER_CROPS,),
    errata=("E1-16",),
)


SPECTRUM = Experiment(
    id="S1-fig8",
    title="Singular values of the training matrix",
    question="How much of the images do 40 components keep?",
    data=(IMAGES,),
    seeds=(0,),
    function=spectrum,
    figures=(
        Lines(
            id="S1-fig8",
            title="The first 1000 singular values of the centred training matrix",
            covers=("S1-24",),
            x="component",
            y=("singular_value", "share"),
            x_scale="log",
            by="data",
            labels=LABELS,
        ),
    ),
    tables=(Table("S1-variance", "Variance kept by the first components", tables.variance),),
    original={"shown": "the first 1000 singular values; 40 components kept by eye"},
    differs=("All singular values are computed, exactly.", OTHER_CROPS),
)


PROJECTIONS = Experiment(
    id="S1-fig7",
    title="Images projected on 40 components",
    question="What is left of an image?",
    data=(IMAGES,),
    seeds=(0,),
    function=projections,
    figures=(
        Gallery(
            id="S1-fig7",
            title="Test images, and what 40 components keep of them",
            covers=("S1-24",),
            where={"figure": "projected"},
            by="strip",
        ),
        Gallery(
            id="S1-components",
            title="The mean image and the first components",
            caption="Grey is zero: the first components are the brightness of the background and "
            "the place and size of the nucleus.",
            where={"figure": "components"},
        ),
    ),
    original={"projection": "fitted to the training images, applied to the test images"},
    differs=("Test images are shown: the components were fitted to others.", OTHER_CROPS),
)


CROPS = Experiment(
    id="S1-crops",
    title="Would the report's blur have cut out other windows?",
    question="How far does the window move with the report's mean-shift filter?",
    data=(IMAGES,),
    seeds=(0,),
    arms=(Arm(columns={"pictures": 150}),),
    function=crop_check,
    tables=(Table("S1-crops", "Pixels between the two windows", tables.windows),),
    original={"blur": "mean-shift filter with radii 30 and 60, before the steps of the crop"},
    differs=("Every eighth test picture: the filter takes 0.3 s for each.",),
    quick={"rows": None, "arms": (Arm(columns={"pictures": 10}),)},
)


SOURCES = Experiment(
    id="S1-sources",
    title="Which pictures were made of the same photograph?",
    question="Do the numbers in the file names tell the photographs apart?",
    data=(IMAGES,),
    seeds=(0,),
    function=source_check,
    tables=(
        Table(
            "S1-sources",
            "Numbers in file names, and groups of like pictures",
            tables.sources,
            note="Pictures are rotated and mirrored copies. Were a number a photograph, the most "
            "similar picture would mostly have the same one.",
        ),
    ),
    original={"sources": "not looked at; files are called _<number>_<random number>.jpeg"},
    differs=(
        "A picture is put beside all others of its folder and class, at every angle and mirrored. "
        "The groups have the sizes that equal shares of the photographs would have (13, 16, 92 and "
        "104 pictures), although some join two photographs; the numbers are places in shuffled "
        "batches. All splits by photograph in this chapter are by these groups.",
    ),
)
