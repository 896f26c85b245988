# The command line as an image. Build from the root of the repository:
#   docker build -t dfinery-elt .
#   docker run --rm dfinery-elt demo
ARG BASE_IMAGE=node:24-bookworm-slim@sha256:6f7b03f7c2c8e2e784dcf9295400527b9b1270fd37b7e9a7285cf83b6951452d

# The machine that builds runs no code of another kind of processor: npm is told which one the image is for.
FROM --platform=$BUILDPLATFORM ${BASE_IMAGE} AS build
ARG TARGETARCH
WORKDIR /build
COPY package.json package-lock.json build.mjs ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY schemas schemas
COPY src src
COPY connectors connectors
RUN node build.mjs
WORKDIR /out
# npm leaves out the DuckDB bindings of other platforms; of the Parquet decoder Node loads one build of three.
RUN cp -r /build/package.json /build/package-lock.json /build/schemas /build/dist . \
 && cpu=$(echo "${TARGETARCH:-$(node -p process.arch)}" | sed s/amd64/x64/) \
 && npm ci --omit=dev --ignore-scripts --no-audit --no-fund --os=linux --cpu="$cpu" \
 && rm -r package-lock.json node_modules/parquet-wasm/bundler node_modules/parquet-wasm/esm \
 && find node_modules -type f -regex ".*\.\(map\|d\.[cm]?ts\)" -delete

FROM ${BASE_IMAGE}
LABEL org.opencontainers.image.title="dfinery-elt" \
      org.opencontainers.image.description="Event export of a customer-data platform into DuckDB, Parquet, Delta Lake and Arrow; proved profile deletion" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.base.name="docker.io/library/node:24-bookworm-slim"
COPY --from=build /out /opt/dfinery-elt
RUN ln -s /opt/dfinery-elt/dist/bin/dfinery-elt.js /usr/local/bin/dfinery-elt \
 && mkdir /data \
 && chown 1000:1000 /data
WORKDIR /data
VOLUME /data
USER 1000:1000
ENV NODE_ENV=production
ENTRYPOINT ["dfinery-elt"]
CMD ["--help"]
