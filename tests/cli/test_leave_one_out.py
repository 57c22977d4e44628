"""`zerogap certify --leave-one-out`."""

import json

import numpy as np

import zerogap as zg


def test_certify_counts_leave_one_out_errors(zerogap, npz, tmp_path):
    path = tmp_path / "model.zg"
    assert zerogap("train", npz, "--loss", "logistic", "--out", path).exit_code == 0
    data = np.load(npz)
    exact = zg.load(path).leave_one_out(data["X"], data["y"])
    outcome = zerogap("certify", path, npz, "--leave-one-out")
    assert outcome.exit_code == 0
    assert f"leave-one-out error {exact.error:.6g} of 200 rows" in outcome.output
    report = json.loads(zerogap("certify", path, npz, "--leave-one-out", "--json").stdout)
    assert report["leave_one_out"]["error_low"] == exact.error_low
    assert report["leave_one_out"]["counts"] == exact.counts
    assert "leave_one_out" not in json.loads(zerogap("certify", path, npz, "--json").stdout)
