import type { CatalogQueries } from './catalog-queries.js';
import { GrpcCatalogClient, type GrpcClientOptions } from './grpc-catalog-client.js';
import { HttpCatalogClient, type HttpClientOptions } from './http-catalog-client.js';

/** A client of a catalog that is served, over either API. */
export type CatalogClient<Bundle = unknown> = CatalogQueries<Bundle>;

/** Makes clients. Nothing is connected to before the first call. */
export const CatalogClient = {
  /**
   * A client of the HTTP catalog API. `url` is that of a catalog, e.g. `https://host/catalogs/NAME` (`urls.base` in
   * the status of a ClusterCatalog), or of a server, of which only `catalogs()` can be asked.
   * Throws OpmateError USAGE for what is no such URL.
   */
  http: (url: string, options: HttpClientOptions = {}): HttpCatalogClient =>
    new HttpCatalogClient(url, options),
  /** A client of the gRPC registry API at `host:port`. Throws OpmateError USAGE for what is no such address. */
  grpc: (address: string, options: GrpcClientOptions = {}): GrpcCatalogClient =>
    new GrpcCatalogClient(address, options),
} as const;
