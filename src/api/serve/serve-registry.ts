/** Registries that serve a layout directory or an archive. */
export { startRegistry } from '../../serve/registry/registry.js';
export { openCertificateFiles } from '../../serve/server/certificate-files.js';
