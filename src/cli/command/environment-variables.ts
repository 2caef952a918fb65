/** Environment variables with their meaning, as man pages and the reference list them. */
export const environmentVariables: readonly (readonly [string, string])[] = [
  ['REGISTRY_AUTH_FILE, DOCKER_CONFIG, XDG_RUNTIME_DIR', 'Locations of credentials files, after --authfile.'],
  ['CONTAINERS_REGISTRIES_CONF', 'registries.conf with mirrors, rewrites, blocked and insecure registries.'],
  ['HTTPS_PROXY, HTTP_PROXY, NO_PROXY', 'Proxies, also in lower case.'],
  ['SSL_CERT_FILE, NODE_EXTRA_CA_CERTS', 'Certificate authorities to trust in addition.'],
  ['OPMATE_CACHE_DIR, OLM_CACHE_DIR', 'Cache of downloaded blobs.'],
  ['OPMATE_CATALOG_CACHE', 'Directory that keeps layers of catalogs, or "none".'],
  ['TMPDIR', 'Temporary directory.'],
  ['NO_COLOR, CI', 'No colors; no spinner.'],
  ['HELP_ALPHA', 'true shows alpha commands and flags in help.'],
];
