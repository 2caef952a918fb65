import { openIndex } from '../../source/library.js';
import type { CommandContext, GlobalOptions } from '../context.js';
import { writeAll } from '../output.js';
import { useSession } from '../session.js';

interface RegistryImagesOptions extends GlobalOptions {
  fromDb?: string;
  bundle?: string;
}

/** `opmate registry images`: the images that an index or one of its bundles needs, one a line, sorted. */
export async function registryImages(context: CommandContext, options: RegistryImagesOptions): Promise<void> {
  await useSession(context, options, async (session) => {
    const index = await openIndex(options.fromDb as string, session);
    try {
      const { bundle } = options;
      const images = bundle === undefined ? index.listImages() : index.getImagesForBundle(bundle);
      session.logger.close();
      await writeAll(context.stdout, images.map((image) => `${image}\n`).join(''));
    } finally {
      await index.close();
    }
  });
}
