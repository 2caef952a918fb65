import type { Field } from '../../document/field.js';
import { openItem, readItems } from './config-fields.js';

export interface PlatformConfig {
  os: string;
  architecture: string;
}

/** Reads a list of platforms; what is wrong with it goes to the document's diagnostics. */
export function readPlatforms(list: Field): PlatformConfig[] {
  return readItems(list.optionalList(), (item) => {
    const fields = openItem(item, ['os', 'architecture'], 'os');
    const [os, architecture] = [fields?.os.text(), fields?.architecture.text()];
    return os === undefined || architecture === undefined ? undefined : { os, architecture };
  });
}
