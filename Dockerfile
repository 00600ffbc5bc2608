# One image for every role: outlast api, relay, worker, migrate. BuildKit and the classic builder both take it, so it
# uses nothing that only one of them knows.
#
# BUILD_IMAGE and BASE_IMAGE have the same Python at the same path. PACKAGE_INDEX is a mirror of the public index, where
# that is not to be used: what is installed is held by the versions and hashes of uv.lock. A file ca-bundle.crt beside this one, never committed, is what the build
# trusts; it does not get into the image.
ARG BUILD_IMAGE=python:3.11-bookworm
ARG BASE_IMAGE=python:3.11-slim-bookworm

FROM ${BUILD_IMAGE} AS build
ARG PACKAGE_INDEX=
ARG UV_VERSION=0.13.9
ENV UV_PYTHON_DOWNLOADS=never
WORKDIR /build

COPY pyproject.toml uv.lock ca-bundle.crt* ./
RUN set -eu; \
    if [ -f ca-bundle.crt ]; then export SSL_CERT_FILE=/build/ca-bundle.crt PIP_CERT=/build/ca-bundle.crt; fi; \
    python3 -m venv tools; \
    tools/bin/python -m pip install --quiet --no-cache-dir ${PACKAGE_INDEX:+-i "$PACKAGE_INDEX"} "uv==$UV_VERSION"; \
    tools/bin/uv export --quiet --frozen --no-dev --extra sqs --no-emit-project --output-file locked.txt; \
    tools/bin/uv venv --quiet --python "$(command -v python3)" /opt/outlast; \
    tools/bin/uv pip install --quiet --no-cache --no-deps --no-build --require-hashes \
      --python /opt/outlast/bin/python ${PACKAGE_INDEX:+--default-index "$PACKAGE_INDEX"} --requirements locked.txt

# Of AWS's services only SQS is spoken to, and those that credentials come from. Symbols of compiled modules are for
# debuggers, and packages' own tests for those who make them.
RUN set -eu; \
    packages=$(/opt/outlast/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'); \
    find "$packages/botocore/data" -mindepth 1 -maxdepth 1 -type d \
      ! -name sqs ! -name sts ! -name 'sso*' ! -name signin -exec rm -r {} +; \
    find "$packages" -type d \( -name tests -o -name testing \) -prune -exec rm -r {} +; \
    if command -v strip > /dev/null; then find "$packages" -name '*.so' -exec strip --strip-unneeded {} +; fi

COPY app src/app
COPY workers src/workers
COPY migrations src/migrations
COPY outlast.py src/

# Bytecode is there for what a role loads when it starts, and not for the rest, which is most. It is checked against
# nothing and compiled under one hash seed, so that it is always the same.
RUN set -eu; \
    export PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1 PATH=/opt/outlast/bin:$PATH; \
    cp -r src/. "$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"; \
    cd /; \
    python -c 'import sys, app.api.serve, workers.child, workers.healthy, workers.main, workers.relay, workers.supervisor; \
      print(*sorted(file for module in list(sys.modules.values()) \
        if (file := getattr(module, "__file__", None) or "").startswith(sys.prefix) and file.endswith(".py")), sep="\n")' | \
      python -m compileall -q --invalidation-mode unchecked-hash -i -; \
    printf '#!/opt/outlast/bin/python\nfrom workers.main import main\n\nmain()\n' > /opt/outlast/bin/outlast; \
    chmod 755 /opt/outlast/bin/outlast; \
    chmod -R u=rwX,go=rX /opt/outlast

FROM ${BASE_IMAGE}
COPY --from=build /opt/outlast /opt/outlast
ENV PATH=/opt/outlast/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    OUTLAST_API_HOST=0.0.0.0
# Modules of handlers are looked for here.
WORKDIR /srv
USER 10001:10001
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["python", "-m", "workers.healthy"]
ENTRYPOINT ["outlast"]
