import type { Field } from '../../document/field.js';

export interface PlatformConfig {
  os: string;
  architecture: string;
}

/** Reads a list of platforms; what is wrong with it goes to the document's diagnostics. */
export function readPlatforms(list: Field): PlatformConfig[] {
  const platforms = list.optionalList().map((item) => {
    if (!item.isPresent) return item.field('os').missing();
    const fields = item.object(['os', 'architecture']);
    const [os, architecture] = [fields?.os.text(), fields?.architecture.text()];
    return os === undefined || architecture === undefined ? undefined : { os, architecture };
  });
  return platforms.filter((item) => item !== undefined);
}
