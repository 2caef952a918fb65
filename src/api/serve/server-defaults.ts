/** Names and limits of servers for their flags. */
export { findCatalogNameFault, getDefaultCatalogName } from '../../serve/http/catalog-names.js';
export { defaultMaxConnections } from '../../serve/server/connections.js';
