"""Errors of the marketplace."""

from __future__ import annotations

from kernel.sdk import Conflict, Forbidden, NotFound, UnsupportedMediaType


class ListingNotFound(NotFound):
    code = "plugin_not_found"
    default_detail = "Plugin not found"


class CategoryNotFound(NotFound):
    code = "category_not_found"
    default_detail = "Category not found"


class PluginNotInstalled(NotFound):
    code = "not_installed"
    default_detail = "You have not installed this plugin"


class ListingNameTaken(Conflict):
    code = "name_taken"
    default_detail = "A plugin with this name is already listed; choose another name"


class IllegalMove(Conflict):
    code = "illegal_transition"
    default_detail = "The listing is not in a state that allows this"


class NotEditable(Conflict):
    code = "not_editable"
    default_detail = "A listing can only be edited while it is a draft or rejected"


class FeaturedByAdministrators(Forbidden):
    code = "featured_by_administrators"
    default_detail = "Only administrators can set 'featured'; leave it out"


class TooManyListings(Conflict):
    code = "too_many_listings"
    default_detail = "You have reached the limit of listings per account; archive some first"


class TooManyInstalled(Conflict):
    code = "too_many_installed"
    default_detail = "You have reached the limit of installed plugins per account; uninstall some first"


class DependencyMissing(Conflict):
    code = "dependency_missing"


class DependentsEnabled(Conflict):
    code = "dependents_enabled"


class NeverInstalled(Forbidden):
    code = "never_installed"
    default_detail = "Only those who have installed a plugin can rate it"


class NotAWheel(UnsupportedMediaType):
    code = "not_a_wheel"
    default_detail = "The file is not a wheel"
