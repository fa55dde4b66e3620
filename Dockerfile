# One image for every process: `docker run IMAGE web`, `… worker`, `… migrate` and so on.

ARG PYTHON=3.11.15

FROM python:${PYTHON}-slim-trixie AS build
WORKDIR /srv
COPY requirements.lock ./
RUN python -m venv /venv \
 && /venv/bin/python -m pip install --no-cache-dir --require-hashes -r requirements.lock
COPY app app
COPY docs/partners docs/partners
COPY docs/verifier docs/verifier
COPY domain domain
COPY projections projections
COPY workers workers
RUN /venv/bin/python -m compileall -q app domain projections workers

FROM python:${PYTHON}-slim-trixie
# pg_dump and pg_restore, which `backup` and `restore` ask for, not older than the server of
# compose.yaml. Debian keeps the newest version alone: when the build does not find this one, name it.
ARG POSTGRESQL=17.12-0+deb13u1
RUN apt-get update \
 && apt-get install --yes --no-install-recommends postgresql-client-17=$POSTGRESQL \
 && rm -rf /var/lib/apt/lists/*
# What `docker inspect` shows of an image.
ARG RELEASE=local
LABEL org.opencontainers.image.title="Carrier lookup, plans and links" \
      org.opencontainers.image.version=$RELEASE
RUN useradd --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin service
COPY --from=build /venv /venv
COPY --from=build /srv /srv
# A volume that is empty takes owner and mode from here.
RUN install -d -o service -g service -m 0700 /srv/keys /srv/backups /srv/redo
WORKDIR /srv
ENV PATH=/venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    SIGNING_KEYS=/srv/keys \
    HOST=0.0.0.0 \
    PORT=8080 \
    METRICS_PORT=9100 \
    LOG_FORMAT=json
# By number, or `runAsNonRoot` refuses it: Kubernetes cannot know who a name is.
USER 10001:10001
EXPOSE 8080 9100
VOLUME /srv/keys
STOPSIGNAL SIGTERM
# By bash, because to start Python nine times in ten seconds takes more than the service at rest.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/$METRICS_PORT && printf 'GET /readyz HTTP/1.0\\r\\n\\r\\n' >&3 && read -r _ status _ <&3 && [ \"$status\" = 200 ]"]
ENTRYPOINT ["python", "-m", "app"]
CMD ["web"]
