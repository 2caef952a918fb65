import { quoteGo } from '../document/go-json.js';
import { compareBytes } from '../core/order.js';

/** Default base image of catalogs: any release of opm serves file-based ones. */
export const defaultCatalogBase = 'quay.io/operator-framework/opm:latest';

interface DockerfileOptions {
  /** Name of the catalog directory next to the Dockerfile. */
  name: string;
  base: string;
  builder: string;
  labels: ReadonlyMap<string, string>;
}

/**
 * Returns the Dockerfile of a catalog image: the catalog at `/configs`, its serve cache at `/tmp/cache`, and the
 * label that locates the catalog. (Source: `opm generate dockerfile`.)
 */
export function catalogDockerfile(options: DockerfileOptions): string {
  const { name, base, builder, labels } = options;
  const lines = [
    '# The builder image must have /bin/opm: it makes the cache that the catalog is served from.',
    `FROM ${builder} as builder`,
    '',
    '# Copy the catalog into the image and make its cache there.',
    `ADD ${name} /configs`,
    'RUN ["/bin/opm", "serve", "/configs", "--cache-dir=/tmp/cache", "--cache-only"]',
    '',
    `FROM ${base}`,
  ];
  if (base === 'scratch') {
    lines.push(
      '# This image does not serve the catalog on its own. In its CatalogSource, set',
      '# spec.grpcPodConfig.extractContent to',
      '#   catalogDir: /configs',
      '#   cacheDir: /tmp/cache',
    );
  } else {
    lines.push(
      '# The base image must have /bin/opm, with the same version as in the builder image.',
      '',
      '# Serve the catalog when the container starts.',
      'ENTRYPOINT ["/bin/opm"]',
      'CMD ["serve", "/configs", "--cache-dir=/tmp/cache"]',
    );
  }
  lines.push(
    '',
    'COPY --from=builder /configs /configs',
    'COPY --from=builder /tmp/cache /tmp/cache',
    '',
    '# Location of the catalog in the image.',
    'LABEL operators.operatorframework.io.index.configs.v1=/configs',
  );
  if (labels.size > 0) {
    lines.push('', '# Further labels.');
    for (const key of [...labels.keys()].sort(compareBytes)) {
      lines.push(`LABEL ${plainQuote(key)}=${plainQuote(labels.get(key) as string)}`);
    }
  }
  return `${lines.join('\n')}\n`;
}

/** Quotes as upstream does, without escapes; rejects text that would end the quotes or the line. */
function plainQuote(text: string): string {
  return /["\\\n\r]/.test(text) ? quoteGo(text) : `"${text}"`;
}
