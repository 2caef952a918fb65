/** A catalog with bundles and operands whose images are really there, to be mirrored. */
import { type BuiltImage, buildImage } from '../../src/oci/image/image-builder.js';
import { layerOf } from '../../src/archive/tar-writer.js';
import { imageLabels } from '../../src/model/image-labels.js';
import type { FaultRegistry } from './fault-registry.js';

export interface OperatorSet {
  /** `host/acme/index:v1` */
  catalog: string;
  /** Digests of the images by `repository:version`, e.g. `acme/app:1.0.0`. */
  digests: ReadonlyMap<string, string>;
}

/** Versions of the package `widget`, oldest first; each has a bundle by tag and an operand by digest. */
export const widgetVersions = ['1.0.0', '1.1.0', '1.2.0'];

/**
 * Serves `acme/index:v1`: the package `widget` with three versions in the channel `stable`, of which each needs an
 * operand of its own (`acme/app`) and one that all share (`acme/proxy`). All images share their lowest layer.
 */
export async function serveOperatorSet(registry: FaultRegistry): Promise<OperatorSet> {
  const digests = new Map<string, string>();
  const base = await layerOf([{ path: 'bin/sh', content: Buffer.from('shell '.repeat(3000)) }]);
  const serve = async (repository: string, version: string, tag: string | undefined, text: string) => {
    const own = await layerOf([{ path: `etc/${repository}`, content: Buffer.from(text.repeat(500)) }]);
    const image = await buildImage({ layers: [base, own] });
    const digest = serveTagged(registry, repository, tag, image);
    digests.set(`${repository}:${version}`, digest);
    return `${registry.host}/${repository}${tag === undefined ? `@${digest}` : `:${tag}`}`;
  };
  const proxy = await serve('acme/proxy', '1', undefined, 'proxy');
  const blobs: object[] = [
    { schema: 'olm.package', name: 'widget', defaultChannel: 'stable' },
    {
      ...{ schema: 'olm.channel', package: 'widget', name: 'stable' },
      entries: widgetVersions.map((version, i) => ({
        name: `widget.v${version}`,
        ...(i > 0 && { replaces: `widget.v${widgetVersions[i - 1]}` }),
      })),
    },
  ];
  for (const version of widgetVersions) {
    const app = await serve('acme/app', version, undefined, `app ${version}`);
    const bundle = await serve('acme/bundle', version, `v${version}`, `bundle ${version}`);
    blobs.push({
      ...{ schema: 'olm.bundle', name: `widget.v${version}`, package: 'widget', image: bundle },
      relatedImages: [
        { name: 'app', image: app },
        { name: 'proxy', image: proxy },
      ],
      properties: [{ type: 'olm.package', value: { packageName: 'widget', version } }],
    });
  }
  digests.set('acme/index:v1', await serveCatalogImage(registry, 'acme/index', blobs));
  return { catalog: `${registry.host}/acme/index:v1`, digests };
}

/** Serves a catalog of these blobs under the tag `v1`; returns its digest. */
export async function serveCatalogImage(
  registry: FaultRegistry,
  repository: string,
  blobs: readonly object[],
): Promise<string> {
  const base = await layerOf([{ path: 'bin/sh', content: Buffer.from('shell '.repeat(3000)) }]);
  const text = blobs.map((blob) => `${JSON.stringify(blob)}\n`).join('');
  const files = await layerOf([{ path: 'configs/widget/catalog.json', content: Buffer.from(text) }]);
  const index = await buildImage({
    layers: [base, files],
    labels: { [imageLabels.configs]: '/configs' },
    entrypoint: ['/bin/opm'],
    cmd: ['serve', '/configs', '--cache-dir=/tmp/cache'],
  });
  return serveTagged(registry, repository, 'v1', index);
}

function serveTagged(
  registry: FaultRegistry,
  repository: string,
  tag: string | undefined,
  image: BuiltImage,
): string {
  registry.serveBlob(repository, image.config);
  for (const { bytes } of image.layers) registry.serveBlob(repository, bytes);
  return registry.serveManifest(repository, tag, image.manifest);
}
