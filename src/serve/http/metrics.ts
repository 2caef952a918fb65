import { getOrAdd } from '../../core/groups.js';
import type { CatalogSet } from '../catalogs/catalog-set.js';

export const metricsType = 'text/plain; version=0.0.4; charset=utf-8';

/** Upper bounds in seconds. (Source: catalogd, for Apdex scores.) */
const buckets = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.2, 1.6, 2, 2.4, 2.8, 3.2, 3.6, 4, 10];

/** Counts of requests, which are formatted as Prometheus text. */
export class Metrics {
  readonly #series = new Map<number, ReturnType<typeof createSeries>>();
  #inFlight = 0;

  begin(): void {
    this.#inFlight++;
  }

  end(status: number, seconds: number, bytes: number): void {
    this.#inFlight--;
    const counted = getOrAdd(this.#series, status, createSeries);
    const bucket = buckets.findIndex((limit) => seconds <= limit);
    if (bucket >= 0) (counted.counts[bucket] as number)++;
    counted.count++;
    counted.seconds += seconds;
    counted.bytes += bytes;
  }

  format(catalogs: CatalogSet): string {
    const lines: string[] = [];
    const family = (name: string, type: string, help: string): void => {
      lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
    };
    const sorted = [...this.#series].sort(([a], [b]) => a - b);
    const duration = 'catalogd_http_request_duration_seconds';
    family(duration, 'histogram', 'How long requests took, by status code.');
    for (const [code, { counts, count, seconds }] of sorted) {
      let below = 0;
      for (const [i, end] of buckets.entries()) {
        below += counts[i] as number;
        lines.push(`${duration}_bucket{code="${code}",le="${end}"} ${below}`);
      }
      lines.push(`${duration}_bucket{code="${code}",le="+Inf"} ${count}`);
      lines.push(`${duration}_sum{code="${code}"} ${seconds}`, `${duration}_count{code="${code}"} ${count}`);
    }
    family('opmate_http_requests_total', 'counter', 'Requests by status code.');
    for (const [code, { count }] of sorted) lines.push(`opmate_http_requests_total{code="${code}"} ${count}`);
    family('opmate_http_response_bytes_total', 'counter', 'Bytes of bodies that were sent, by status code.');
    for (const [code, { bytes }] of sorted) {
      lines.push(`opmate_http_response_bytes_total{code="${code}"} ${bytes}`);
    }
    family('opmate_http_requests_in_flight', 'gauge', 'Requests in flight.');
    lines.push(`opmate_http_requests_in_flight ${this.#inFlight}`);
    const list = catalogs.list();
    family('opmate_catalogs', 'gauge', 'Catalogs that are served.');
    lines.push(`opmate_catalogs ${list.length}`);
    const perCatalog = (name: string, help: string, getValue: (catalog: (typeof list)[number]) => number) => {
      family(name, 'gauge', help);
      for (const catalog of list) {
        lines.push(`${name}{catalog="${escapeLabel(catalog.name)}"} ${getValue(catalog)}`);
      }
    };
    perCatalog('opmate_catalog_blobs', 'Blobs of a catalog.', ({ content }) => content.count);
    perCatalog('opmate_catalog_bytes', 'Bytes of a catalog as it is served.', ({ content }) => content.size);
    perCatalog(
      'opmate_catalog_last_unpack_timestamp_seconds',
      'When the content of a catalog last changed.',
      ({ content, changedAt }) => (changedAt ?? content.storedAt).getTime() / 1000,
    );
    return `${lines.join('\n')}\n`;
  }
}

function createSeries() {
  return { counts: buckets.map(() => 0), count: 0, seconds: 0, bytes: 0 };
}

function escapeLabel(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}
