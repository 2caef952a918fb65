import { Spool } from '../../catalog/spool.js';
import type { BundleManifests, BundleRecord } from '../schema/bundle-record.js';

/** A bundle to add; its manifests are kept outside of memory. */
export interface StagedBundle {
  record: BundleRecord;
  /** Origin in messages. */
  reference: string;
  /** Digest of its image; undefined for a directory. */
  digest?: string | undefined;
  manifests(): Promise<BundleManifests>;
}

/** Bundles that were pulled and read, until one transaction adds them all. */
export class Stage {
  readonly #spool: Spool;
  readonly bundles: StagedBundle[] = [];

  /** `temporaryDirectory` is for manifests that do not fit in memory. */
  constructor(temporaryDirectory: string) {
    this.#spool = new Spool(temporaryDirectory);
  }

  async add(
    record: BundleRecord,
    manifests: BundleManifests,
    reference: string,
    digest?: string,
  ): Promise<void> {
    const csv = await this.#spool.append(manifests.csv);
    const objects = await this.#spool.append(manifests.objects);
    this.bundles.push({
      // A copy: slices of the manifests would keep these in memory.
      record: JSON.parse(JSON.stringify(record)) as BundleRecord,
      reference,
      digest,
      manifests: async () => ({
        csv: await this.#spool.read(csv),
        objects: await this.#spool.read(objects),
      }),
    });
  }

  close(): Promise<void> {
    return this.#spool.close();
  }
}
