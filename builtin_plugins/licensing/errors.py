"""Errors of licensing."""

from __future__ import annotations

from kernel.sdk import BadGateway, Conflict, NotFound, Unavailable


class PluginUnknown(NotFound):
    code = "plugin_not_found"
    default_detail = "Plugin not found"


class LicenseNotFound(NotFound):
    code = "license_not_found"
    default_detail = "License not found"


class NoSeatsLeft(Conflict):
    code = "no_seats_left"
    default_detail = "All seats of this license are taken; remove one, or activate it with more seats"


class SeatsTaken(Conflict):
    code = "seats_taken"
    default_detail = "More seats are taken than the license would have; remove some first"


class BetterLicense(Conflict):
    code = "better_license"
    default_detail = "You already have a license of a higher tier for this plugin"


class TooManyOrders(Conflict):
    code = "too_many_orders"
    default_detail = "You have too many unpaid orders; pay or cancel one, or wait until some expire"


class ProviderAway(BadGateway):
    code = "checkout_provider_away"
    default_detail = "The payment provider can't be reached; nothing was ordered. Try again in a few minutes"


class NoCheckout(Unavailable):
    code = "no_checkout_provider"
    default_detail = "Checkout is not available: the operator has not set up a payment provider"
