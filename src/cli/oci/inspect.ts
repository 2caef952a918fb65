import { argument, defineCommand } from '../command/declaration.js';
import { flag } from '../command/flags.js';
import { outputFormat } from '../command/shared-flags.js';
import { UsageError } from '../../core/errors.js';
import { encodeGoJson } from '../../document/go-json.js';
import { compareBytes } from '../../core/order.js';
import type { JsonObject, JsonValue } from '../../document/json.js';
import { parseReference } from '../../core/reference.js';
import { encodeYaml } from '../../document/yaml.js';
import { openImage } from '../../oci/image/image.js';
import { openReference } from '../../oci/image/open.js';
import { writeAll } from '../output.js';
import { useSession } from '../session.js';

/** `opmate oci inspect`: what an image is, without reading its layers. */
export const command = defineCommand({
  summary: 'show digest, platform, labels and layers of an image',
  arguments: [argument('<reference>', 'image in a registry, layout or archive')],
  flags: {
    output: outputFormat(['json', 'yaml'], { default: 'json' }),
    raw: flag('print the raw manifest', { group: 'Output' }),
    tags: flag('list the tags of the repository', { group: 'Output' }),
  },
  examples: [
    ['Show an image', 'opmate oci inspect registry.example.com/demo/bundle:v1.0.0'],
    ['List the tags of a repository', 'opmate oci inspect registry.example.com/demo/bundle --tags'],
  ],
  async run({ context, args: [reference], options }) {
    const { output: format } = options;
    if (options.raw && options.tags) {
      throw new UsageError('--raw and --tags cannot be used together', { hint: 'keep one of them' });
    }
    await useSession(context, options, async (session) => {
      const text = await describe();
      session.logger.close();
      await writeAll(context.stdout, text);

      async function describe(): Promise<string> {
        const { platform, hostPlatform, signal } = session;
        const parsed = parseReference(reference);
        // Tags belong to the repository, so listing them needs none.
        const needsTag = parsed.tag === undefined && parsed.digest === undefined;
        const named = options.tags && needsTag ? { ...parsed, tag: 'latest' } : parsed;
        const opened = await openReference(named, session);
        try {
          const { repository } = opened;
          if (options.tags)
            return encode({ name: repository.name, tags: await repository.listTags({ signal }) });
          if (options.raw)
            return (await repository.getManifest(opened.reference, { signal })).bytes.toString();
          const image = await openImage(repository, opened.reference, { platform, hostPlatform, signal });
          const labels: JsonObject = {};
          for (const key of Object.keys(image.labels).sort(compareBytes))
            labels[key] = image.labels[key] as string;
          return encode({
            name: image.name,
            digest: image.root.digest,
            manifest: image.descriptor.digest,
            mediaType: image.descriptor.mediaType,
            platform: { ...image.platform } as JsonObject,
            ...(image.config.created !== undefined && { created: image.config.created }),
            labels,
            layers: image.manifest.layers.map(({ mediaType, digest, size }) => ({ mediaType, digest, size })),
          });
        } finally {
          await opened.close();
        }
      }
    });

    function encode(value: JsonValue): string {
      return format === 'yaml' ? encodeYaml(value) : `${encodeGoJson(value, { indent: 2 })}\n`;
    }
  },
});
