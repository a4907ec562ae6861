# The platform as an image: `docker build -t platform .`
#
# KIND=light has everything but torch, all-MiniLM-L6-v2 and speech recognition; KIND=full has these, too. The weights
# of the default embedding model are a package, and so inside. Nothing is downloaded when a container starts.
# Webhooks use all-MiniLM-L6-v2: with KIND=light, set PLATFORM_WEBHOOK_EMBED_MODELS as compose.yaml says.
ARG PYTHON=3.11
FROM python:${PYTHON}-slim-bookworm AS build
ARG KIND=light
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /build
COPY requirements.lock requirements-light.lock requirements-build.lock ./
RUN python3 -m venv /opt/platform
# A full image needs an index with torch for the processor (--build-arg PIP_EXTRA_INDEX_URL=…), with a hash of the lock.
ARG PIP_EXTRA_INDEX_URL=
RUN if [ "$KIND" = full ]; then \
        awk '/^[^ #]/ { ours = /^torch==/ } ours' requirements.lock | sed 's/^torch==[^ ]*/&+cpu/' > torch.lock && \
        /opt/platform/bin/pip install --require-hashes --no-deps -r torch.lock && \
        /opt/platform/bin/pip install --require-hashes --no-deps -r requirements.lock; \
    else \
        /opt/platform/bin/pip install --require-hashes --no-deps --no-compile -r requirements-light.lock; \
    fi
# OpenVINO's parts for graphics cards and neural processors: the engine uses the processor alone.
RUN rm -f /opt/platform/lib/python*/site-packages/openvino/libs/libopenvino_intel_gpu_plugin.so \
        /opt/platform/lib/python*/site-packages/openvino/libs/libopenvino_intel_npu_plugin.so \
        /opt/platform/lib/python*/site-packages/openvino/libs/cache.json
COPY . .
RUN /opt/platform/bin/pip install --require-hashes --no-deps --target build -r requirements-build.lock && \
    PYTHONPATH=build /opt/platform/bin/pip install --no-deps --no-build-isolation --no-index .

FROM python:${PYTHON}-slim-bookworm
# tesseract reads scanned pages, espeak-ng speaks; both are programs of their own.
RUN apt-get update && \
    apt-get install -y --no-install-recommends espeak-ng tesseract-ocr && \
    rm -rf /var/lib/apt/lists/* && \
    useradd --uid 10001 --user-group --create-home --home-dir /data --shell /usr/sbin/nologin platform && \
    install -d -o platform -g platform -m 700 /data/home /data/manifests
COPY --from=build /opt/platform /opt/platform
ENV PATH=/opt/platform/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PLATFORM_HOME=/data/home \
    PLATFORM_MANIFESTS_DIR=/data/manifests \
    PLATFORM_HOST=0.0.0.0
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=4 \
    CMD ["python3", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/readyz', timeout=4)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["platformctl"]
CMD ["serve"]
