"""Transcript operations of features."""

from __future__ import annotations

from minicluster.controller.decision import KRaftVersion
from minicluster.controller.operations.update_features import FAILED, update_features
from minicluster.protocol import messages as m
from tests.transcripts.operations.results import Result, error_name, result_of
from tests.transcripts.replayed_controller import Json, ReplayedController


def on_update_features(controller: ReplayedController, line: Json) -> Result:
    request = line["request"]
    Request = m.UpdateFeaturesRequest
    decision = update_features(
        controller.state,
        Request(
            feature_updates=tuple(
                Request.FeatureUpdateKey(**update) for update in request["updates"]
            ),
            validate_only=request["validate_only"],
        ),
        2,
        KRaftVersion(level=1),
        line["now_ms"],
    )
    response = decision.response
    if not controller.state.rules.features_change_together:
        # In the order of the names: Kafka's is that of a hash map.
        results = sorted(response.results, key=lambda result: result.feature)
        return result_of(
            decision,
            [
                {
                    "feature": each.feature,
                    "error": error_name(each.error_code),
                    "error_message": each.error_message,
                }
                for each in results
            ],
        )
    result = result_of(decision, error_name(response.error_code))
    if response.error_message is not None:
        result.message = response.error_message.removeprefix(FAILED)
    return result
