# npl as a team's server. It runs as an unprivileged user and writes only to its data folder.
FROM python:3.13-slim AS build
WORKDIR /src
COPY requirements.txt pyproject.toml README.md LICENSE ./
# The versions pinned for tests, as constraints.
RUN sed -e '/^ *--hash=/d' -e 's/ *\\$//' requirements.txt > pinned.txt
COPY npl_index npl_index
COPY npl_mcp npl_mcp
COPY corpus corpus
RUN python -m venv /npl && /npl/bin/pip install --no-cache-dir --constraint pinned.txt '.[all]'

FROM python:3.13-slim
COPY --from=build /npl /npl
# A new volume is a copy of this folder.
RUN useradd --uid 10001 --no-create-home --home-dir /data npl \
    && install -d -o npl -g npl -m 700 /data /data/work
ENV PATH=/npl/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    NPL_MCP_DATA_DIR=/data NPL_MCP_HOST=0.0.0.0
USER 10001:10001
# The path identifies the worklogs' project, so every replica has the same.
WORKDIR /data/work
VOLUME /data
EXPOSE 8765
HEALTHCHECK --interval=5s --timeout=4s --start-period=20s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8765/readyz', timeout=3)"]
CMD ["npl-mcp-server"]
