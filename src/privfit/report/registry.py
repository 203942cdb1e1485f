"""An entry for a public registry of deployments of differential privacy, as YAML. What only the owner knows is null."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from privfit.report.document import Facts, shown


def entry(facts: Facts) -> str:
    """The entry of a release, with the field names of the OpenDP deployments registry."""
    return "\n".join(_lines(_fields(facts), 0)) + "\n"


def _fields(facts: Facts) -> dict[str, Any]:
    report = facts["report"]
    private, day = report["private"], (facts.get("time") or "")[:10]
    flavor = "Pure DP" if not report["delta"] else "Approximate DP"
    return {
        "status": "Draft",
        "deployment": {
            "product": {
                "name": shown(report["model"]),
                "data_curators": shown(facts["publisher"]) or None,
                "intended_use": None,
                "data_product_type": "Machine learning model",
                "description": None,
                "publication_date": day or None,
            },
            "dp_flavor": {
                "name": flavor if private else "None: this release is not private",
                "input_metric": shown(report["adjacency"]),
                "unprotected_quantities": [shown(fact) for fact in report["public"]],
            },
            "privacy_loss": {
                "privacy_unit": "person-level",
                "privacy_unit_description": f"At most {report['rows_per_person']} rows of one person",
                "privacy_parameters": {"epsilon": report["epsilon"], "delta": report["delta"]} if private else None,
            },
            "model": {
                "model_name": "Central",
                "release_type": "One release",
                "data_source_type": "Static",
                "access_type": "Non-interactive",
            },
            "implementation": {"mechanisms": f"{shown(report['mechanism'])}, {shown(report['noise'])}"},
        },
    }


def _lines(value: Mapping[str, Any], depth: int) -> list[str]:
    """Block mappings, and scalars as JSON writes them, which YAML reads too."""
    found, indent = [], "  " * depth
    for key, one in value.items():
        if isinstance(one, Mapping):
            found += [f"{indent}{key}:", *_lines(one, depth + 1)]
        else:
            found.append(f"{indent}{key}: {json.dumps(one)}")
    return found
