"""What a plugin with a kind of source needs: the protocol, its errors, and the hook."""

from __future__ import annotations

from collections.abc import Sequence

from builtin_plugins.sources.addresses import address_of as address_of
from builtin_plugins.sources.batches import BatchedAnswer as BatchedAnswer
from builtin_plugins.sources.batches import lists_together as lists_together
from builtin_plugins.sources.calling import ABSENT as ABSENT
from builtin_plugins.sources.calling import as_listed as as_listed
from builtin_plugins.sources.calling import call_server as call_server
from builtin_plugins.sources.calling import clock_difference as clock_difference
from builtin_plugins.sources.calling import item_pieces as item_pieces
from builtin_plugins.sources.calling import seconds_to_wait as seconds_to_wait
from builtin_plugins.sources.json_api import BearerToken as BearerToken
from builtin_plugins.sources.json_api import JsonApi as JsonApi
from builtin_plugins.sources.json_api import RouteAbsent as RouteAbsent
from builtin_plugins.sources.json_api import RouteRefused as RouteRefused
from builtin_plugins.sources.json_api import constant_headers as constant_headers
from builtin_plugins.sources.json_api import entries_of as entries_of
from builtin_plugins.sources.json_api import link_of as link_of
from builtin_plugins.sources.protocol import CredentialRefused as CredentialRefused
from builtin_plugins.sources.protocol import DocumentSource as DocumentSource
from builtin_plugins.sources.protocol import GoneItem as GoneItem
from builtin_plugins.sources.protocol import GuardedSource as GuardedSource
from builtin_plugins.sources.protocol import ItemFault as ItemFault
from builtin_plugins.sources.protocol import ItemUnsuitable as ItemUnsuitable
from builtin_plugins.sources.protocol import ItemVanished as ItemVanished
from builtin_plugins.sources.protocol import Listing as Listing
from builtin_plugins.sources.protocol import ListingEnd as ListingEnd
from builtin_plugins.sources.protocol import ListingIncomplete as ListingIncomplete
from builtin_plugins.sources.protocol import SourceDirectory as SourceDirectory
from builtin_plugins.sources.protocol import SourceFault as SourceFault
from builtin_plugins.sources.protocol import SourceGrant as SourceGrant
from builtin_plugins.sources.protocol import SourceGroup as SourceGroup
from builtin_plugins.sources.protocol import SourceItem as SourceItem
from builtin_plugins.sources.protocol import SourceKind as SourceKind
from builtin_plugins.sources.protocol import SourceMisplaced as SourceMisplaced
from builtin_plugins.sources.protocol import SourcePerson as SourcePerson
from builtin_plugins.sources.protocol import SourceSetup as SourceSetup
from builtin_plugins.sources.protocol import SourceThrottled as SourceThrottled
from builtin_plugins.sources.protocol import SourceUnreachable as SourceUnreachable
from builtin_plugins.sources.readings import RightsReading as RightsReading
from builtin_plugins.sources.readings import WholeReading as WholeReading
from kernel.sdk import hookspec


@hookspec.declaration
def register_sources() -> Sequence[SourceKind]:
    """Kinds of sources that knowledge bases can keep in step with.

    A kind whose name is taken is refused. The documents of one with permissions of its own (`guarded`) are
    read here only by accounts that correspond to people who may read them there.
    """
