import type { Platform } from '../oci/image/types.js';

/** Architecture names of the image specification, by Node.js name. */
const architectures: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386', ppc64: 'ppc64le' };

/** Returns the image platform of a machine; catalogs and bundles are always built for Linux. */
export function platformOfMachine(architecture: string): Platform {
  return { os: 'linux', architecture: architectures[architecture] ?? architecture };
}
