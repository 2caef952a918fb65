import { OpmateError } from '../../core/errors.js';
import { holdOpen } from '../../oci/image/open.js';
import type { Platform } from '../../oci/image/types.js';
import type { SourceSession } from '../../source/session.js';
import { type RebuiltCatalog, rebuildFrom } from '../selection/rebuilt-catalog.js';
import type { Transfer } from '../transfer/transfer-types.js';
import type { PlannedCatalog } from './image-set-plan.js';

/** The filtered catalogs of a run, until it is closed. */
export class RebuiltCatalogs {
  private readonly session: SourceSession;
  private readonly rebuilt = new Map<PlannedCatalog, RebuiltCatalog>();

  constructor(session: SourceSession) {
    this.session = session;
  }

  /** Rebuilds a catalog without some references, in place of an earlier one. Throws OpmateError. */
  async rebuild(
    catalog: PlannedCatalog,
    platforms: readonly Platform[] | undefined,
    withoutImages: readonly string[],
  ): Promise<RebuiltCatalog> {
    await this.rebuilt.get(catalog)?.close();
    this.rebuilt.delete(catalog);
    requireOtherPlace(catalog);
    const source = { ...catalog, facts: catalog.selection.facts };
    const changes = { platforms, withoutImages: new Set(withoutImages) };
    const rebuilt = await rebuildFrom(source, this.session, changes);
    this.rebuilt.set(catalog, rebuilt);
    return rebuilt;
  }

  /** Returns the transfer of a catalog that copies the rebuilt one, if there is one; it has no other platforms. */
  replaceSource(transfer: Transfer, catalog: PlannedCatalog | undefined): Transfer {
    const rebuilt = catalog && this.rebuilt.get(catalog);
    if (rebuilt === undefined) return transfer;
    return { ...transfer, source: () => Promise.resolve(holdOpen(rebuilt)), platforms: undefined };
  }

  async close(): Promise<void> {
    for (const rebuilt of this.rebuilt.values()) await rebuilt.close();
    this.rebuilt.clear();
  }
}

/** Throws OpmateError for a filtered catalog that would replace its source. */
function requireOtherPlace({ operator: { catalog, reference }, destination }: PlannedCatalog): void {
  if (reference.transport !== 'docker' || reference.digest !== undefined) return;
  const { registry, repository, tag = 'latest' } = reference;
  if (destination !== `${registry}/${repository}:${tag}`) return;
  throw new OpmateError('INVALID', 'the filtered catalog would replace the original', {
    subject: catalog,
    hint: 'mirror to another registry or path, or set another targetCatalog or targetTag',
  });
}
