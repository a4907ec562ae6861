"""Licenses of accounts, on the service `marketplace` (wire-facts 10.6)."""

from __future__ import annotations

from kernel.sdk import (
    ADMIN_OR_SERVICE,
    AUTHENTICATED,
    PUBLIC,
    Answer,
    Context,
    Message,
    NotFound,
    Rate,
    RawBody,
    RouteTable,
    Unauthorized,
    permission,
    read_body,
)

from ..errors import (
    BetterLicense,
    LicenseNotFound,
    NoCheckout,
    NoSeatsLeft,
    PluginUnknown,
    ProviderAway,
    SeatsTaken,
    TooManyOrders,
)
from ..schemas import (
    ActivatedLicense,
    ActivateRequest,
    Checkout,
    CheckoutRequest,
    KeyInvalid,
    KeyValid,
    LicenseList,
    LicenseLookup,
    LookupQuery,
    NewKey,
    SeatList,
    ValidateKeyRequest,
)
from ..services import checkout, licenses, seats
from ..services.plugins import check_form
from ..settings import LicensingSettings

routes = RouteTable("Licenses", service="marketplace", optional=True)

_BASE = "/v1/marketplace/licenses"
_OF_ORGANIZATION = "/v1/marketplace/organizations/{org_id:int}/licenses"
_SEAT = _OF_ORGANIZATION + "/{license_id:uuid}/seats/{user_id:int}"
BILLING = permission("org.billing.manage", within="org_id", or_admin=True)
NO_STORE = {"Cache-Control": "no-store"}
_NOTICE_BYTES = 256 * 1024


@routes.get(_BASE, access=AUTHENTICATED, returns=LicenseList)
async def list_licenses(ctx: Context) -> LicenseList:
    """List the caller's licenses, and those of organizations in which it has a seat; keys are masked."""
    return await licenses.list_own(ctx.caller)


@routes.get(
    f"{_BASE}/lookup",
    access=ADMIN_OR_SERVICE,
    query=LookupQuery,
    returns=LicenseLookup,
    errors=(PluginUnknown,),
)
async def look_up(ctx: Context, query: LookupQuery) -> LicenseLookup:
    """Show the highest tier that an account has for a plugin, by its own license or a seat."""
    check_form(ctx.platform, query.plugin_id)
    tier, _ = await licenses.best_of(ctx.platform, query.user_id, query.plugin_id)
    return LicenseLookup(tier=tier, active=tier is not None)


def _validations(settings: LicensingSettings) -> int:
    return settings.validations_per_minute


@routes.post(
    f"{_BASE}/validate",
    access=AUTHENTICATED,
    body=ValidateKeyRequest,
    returns=KeyValid | KeyInvalid,
    errors=(PluginUnknown,),
    rate=Rate(_validations, settings=LicensingSettings),
)
async def validate(ctx: Context, body: ValidateKeyRequest) -> KeyValid | KeyInvalid:
    """Check a license key; a valid one counts as used."""
    return await licenses.validate_key(ctx.caller, body.license_key, body.plugin_id)


@routes.post(
    f"{_BASE}/activate",
    access=ADMIN_OR_SERVICE,
    body=ActivateRequest,
    returns=ActivatedLicense,
    errors=(PluginUnknown, SeatsTaken),
)
async def activate(ctx: Context, body: ActivateRequest) -> Answer:
    """Activate a license for a year, for the caller, another account or an organization.

    There is one for each holder and plugin: activating again replaces key and tier. The key is shown here
    and never again.
    """
    return Answer(await licenses.activate(ctx.caller, body), headers=NO_STORE)


@routes.post(
    f"{_BASE}/{{license_id:uuid}}/key", access=AUTHENTICATED, returns=NewKey, errors=(LicenseNotFound,)
)
async def renew_key(ctx: Context, license_id: str) -> Answer:
    """Replace the key of one of the caller's licenses, and show the new one once."""
    return Answer(await licenses.renew_key(ctx.caller, license_id), headers=NO_STORE)


@routes.post(
    "/v1/marketplace/plugins/{plugin_id:uuid}/checkout",
    access=AUTHENTICATED,
    body=CheckoutRequest,
    returns=Checkout,
    errors=(PluginUnknown, BetterLicense, TooManyOrders, NoCheckout, ProviderAway),
)
async def start_checkout(ctx: Context, plugin_id: str, body: CheckoutRequest) -> Checkout:
    """Start buying a tier of a plugin; returns the address to pay at. Payment activates the license."""
    return await checkout.start(ctx.caller, plugin_id, body.tier)


@routes.post(
    "/v1/marketplace/checkout/{provider}/notices",
    access=PUBLIC,
    body=RawBody(example={"type": "order.paid", "order_id": "3f0e8f6e-0c57-4d0f-9c07-5f8a3a1f6f5b"}),
    returns=Message,
    errors=(NotFound, Unauthorized),
    open_to_writes=True,
)
async def take_notice(ctx: Context, provider: str) -> Message:
    """Receive a payment provider's signed notice of an order; repeating one is not an error."""
    body = await read_body(ctx.request, _NOTICE_BYTES, ctx.platform.settings.body_timeout)
    headers = {name.lower(): value for name, value in ctx.request.headers.items()}
    state = await checkout.take_notice(ctx.platform, provider, headers, body)
    return Message(message=f"The order is {state}")


@routes.get(_OF_ORGANIZATION, access=BILLING, returns=LicenseList)
async def list_of_organization(ctx: Context, org_id: int) -> LicenseList:
    """List the licenses of an organization, with their seats."""
    return await licenses.list_of_organization(ctx.caller, org_id)


@routes.get(
    _OF_ORGANIZATION + "/{license_id:uuid}/seats",
    access=BILLING,
    returns=SeatList,
    errors=(LicenseNotFound,),
)
async def list_seats(ctx: Context, org_id: int, license_id: str) -> SeatList:
    """List who has the seats of a license."""
    return await seats.list_seats(ctx.caller, org_id, license_id)


@routes.put(_SEAT, access=BILLING, returns=SeatList, errors=(LicenseNotFound, NoSeatsLeft))
async def assign_seat(ctx: Context, org_id: int, license_id: str, user_id: int) -> SeatList:
    """Give a member of the organization a seat. It counts while the account is a member."""
    return await seats.assign(ctx.caller, org_id, license_id, user_id)


@routes.delete(_SEAT, access=BILLING, returns=SeatList, errors=(LicenseNotFound,))
async def remove_seat(ctx: Context, org_id: int, license_id: str, user_id: int) -> SeatList:
    """Remove a seat; its holder loses the tier at once."""
    return await seats.remove(ctx.caller, org_id, license_id, user_id)
