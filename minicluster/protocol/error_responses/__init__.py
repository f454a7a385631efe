"""Responses that carry one error about a whole request."""

from __future__ import annotations

from minicluster.protocol.error_responses.error_response import error_items, error_response

__all__ = ["error_items", "error_response"]
