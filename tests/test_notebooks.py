"""The notebooks of the tutorials run from top to bottom, and show what they promise."""

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

FOLDER = Path(__file__).parents[1] / "docs" / "tutorials"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def test_there_are_three_tutorials():
    assert len(NOTEBOOKS) == 3


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of event loops and ports
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "stored without outputs"
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=120, resources=resources).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    data = [set(output.get("data", {})) for output in outputs]
    assert any("image/png" in kinds for kinds in data)
    assert any("text/html" in kinds for kinds in data)  # results show themselves
    if path.stem == "first-model":
        said = "".join(output["text"] for output in outputs if output.get("name") == "stderr")
        assert "\rprimal" in said
        assert said.count("\n") == 1 + said.count("zerogap: compiling")  # one line, written again
