import { describe, expect, it } from 'vitest';
import { createCatalogSet } from '../../../../src/serve/catalogs/catalog-set.js';
import { Metrics } from '../../../../src/serve/http/metrics.js';

describe('serve/http/metrics', () => {
  it('counts in buckets that include the smaller ones, by status code', () => {
    const metrics = new Metrics();
    for (const [status, seconds, bytes] of [
      [404, 0.01, 10],
      [200, 0.05, 1000],
      [200, 0.95, 500],
      [200, 60, 0],
    ] as const) {
      metrics.begin();
      metrics.end(status, seconds, bytes);
    }
    metrics.begin();
    const lines = metrics.format(createCatalogSet()).split('\n');
    const name = 'catalogd_http_request_duration_seconds';
    expect(lines).toEqual(
      expect.arrayContaining([
        `# TYPE ${name} histogram`,
        `${name}_bucket{code="200",le="0.1"} 1`,
        `${name}_bucket{code="200",le="0.9"} 1`,
        `${name}_bucket{code="200",le="1"} 2`,
        `${name}_bucket{code="200",le="10"} 2`,
        `${name}_bucket{code="200",le="+Inf"} 3`,
        `${name}_count{code="200"} 3`,
        `${name}_sum{code="200"} 61`,
        'opmate_http_requests_total{code="404"} 1',
        'opmate_http_response_bytes_total{code="200"} 1500',
        'opmate_http_requests_in_flight 1',
        'opmate_catalogs 0',
      ]),
    );
    const sample = /^[a-z_]+(\{[a-z]+="[^"]*"(,le="[^"]*")?\})? [\d.e+-]+$/;
    expect(lines.filter((line) => line !== '' && !line.startsWith('# ') && !sample.test(line))).toEqual([]);
  });
});
