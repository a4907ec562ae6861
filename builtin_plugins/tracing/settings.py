"""Settings of the traces: OpenTelemetry's own variables. Its library reads the others itself."""

from __future__ import annotations

from pydantic import Field, SecretStr

from kernel.sdk import Settings, env


class TracingSettings(Settings):
    """Whether traces are sent, and where to."""

    endpoint: SecretStr | None = Field(
        None,
        validation_alias=env("OTEL_EXPORTER_OTLP_ENDPOINT"),
        description="OpenTelemetry collector, as http://host:4318. No traces are made without one.",
    )
    traces_endpoint: SecretStr | None = Field(
        None,
        validation_alias=env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),
        description="Address for traces, as http://host:4318/v1/traces; used instead of the one above.",
    )
    exporter: str = Field(
        "otlp",
        validation_alias=env("OTEL_TRACES_EXPORTER"),
        description="`otlp`, or `none` for no traces.",
    )
    protocol: str = Field(
        "http/protobuf",
        validation_alias=env("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"),
        description="Protocol of the collector; only `http/protobuf` can be used.",
    )
    disabled: bool = Field(
        False,
        validation_alias=env("OTEL_SDK_DISABLED"),
        description="Turns traces off, whatever else is set.",
    )
    service_name: str = Field(
        "platform", validation_alias=env("OTEL_SERVICE_NAME"), description="Name of the platform in traces."
    )

    @property
    def address(self) -> str | None:
        """Where traces go; None when there are to be none."""
        if self.disabled or self.exporter.strip().lower() == "none":
            return None
        if self.traces_endpoint is not None and (whole := self.traces_endpoint.get_secret_value().strip()):
            return whole
        if self.endpoint is not None and (base := self.endpoint.get_secret_value().strip()):
            return base.rstrip("/") + "/v1/traces"
        return None
