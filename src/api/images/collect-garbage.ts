/** Garbage of layout directories. */
export { collectGarbage, defaultGarbageAgeMs } from '../../oci/layout/layout-garbage.js';
