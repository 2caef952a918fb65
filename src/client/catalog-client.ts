import type { CatalogQueries } from './catalog-queries.js';
import { GrpcCatalogClient, type GrpcClientOptions } from './grpc-catalog-client.js';
import { HttpCatalogClient, type HttpClientOptions } from './http-catalog-client.js';

/** A client of a served catalog over either API. */
export type CatalogClient<Bundle = unknown> = CatalogQueries<Bundle>;

/** Creates clients, which connect on the first call. */
export const CatalogClient = {
  /**
   * Creates a client of the HTTP catalog API. `url` is that of a catalog, such as `https://host/catalogs/NAME`
   * (`urls.base` in the status of a ClusterCatalog), or of a server, for `catalogs()` only. Throws OpmateError USAGE
   * for another URL.
   */
  http: (url: string, options: HttpClientOptions = {}): HttpCatalogClient =>
    new HttpCatalogClient(url, options),
  /** Creates a client of the gRPC registry API at `host:port`. Throws OpmateError USAGE for an invalid address. */
  grpc: (address: string, options: GrpcClientOptions = {}): GrpcCatalogClient =>
    new GrpcCatalogClient(address, options),
} as const;
