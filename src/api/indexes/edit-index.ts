import { type PullFrom, createManifestFetcher } from '../../source/bundles.js';
import type { Session } from '../../source/session.js';
import { type DeleteReport, deleteBundle, deleteLatest } from '../../sqlite/remove/delete-bundle.js';
import { type DeprecateReport, deprecateTruncate } from '../../sqlite/remove/deprecate.js';
import {
  type PruneReport,
  type RemoveReport,
  prunePackages,
  removePackages,
} from '../../sqlite/remove/remove.js';
import { type StrandedReport, pruneStranded } from '../../sqlite/remove/stranded.js';
import type { Database } from '../../sqlite/schema/database.js';
import { type EditOptions, editDatabase } from '../../sqlite/schema/edit.js';

/** Requests of changes of an index, by kind. */
interface ChangeRequests {
  /** Removes packages. */
  remove: { packages: readonly string[]; permissive?: boolean | undefined };
  /** Removes all packages but these. */
  prune: { packages: readonly string[] };
  /** Removes bundles that are in no channel. */
  'prune-stranded': object;
  /** Removes one bundle and rewires the edges around it. */
  delete: { bundle: string; pullFrom?: readonly PullFrom[] | undefined };
  /** Removes the newest version of a package, or all heads. */
  'delete-latest': {
    package: string;
    eachChannel?: boolean | undefined;
    pullFrom?: readonly PullFrom[] | undefined;
  };
  /** Deprecates bundles, named by their images, and removes older ones. */
  deprecate: {
    bundles: readonly string[];
    permissive?: boolean | undefined;
    allowPackageRemoval?: boolean | undefined;
  };
}

/** Results of changes of an index, by kind. */
export interface ChangeReports {
  remove: RemoveReport;
  prune: PruneReport;
  'prune-stranded': StrandedReport;
  delete: DeleteReport;
  'delete-latest': DeleteReport;
  deprecate: DeprecateReport;
}

/** Kind of a change of an index. */
export type IndexChangeKind = keyof ChangeReports;

/** A change of an index. */
export type IndexChange<K extends IndexChangeKind> = { kind: K } & ChangeRequests[K];

type Changes = {
  [K in IndexChangeKind]: (
    database: Database,
    request: ChangeRequests[K],
    session: Session,
  ) => Promise<ChangeReports[K]>;
};

const changes: Changes = {
  remove: (database, { packages, permissive }, { signal }) =>
    removePackages(database, packages, { permissive, signal }),
  prune: (database, { packages }, { signal }) => prunePackages(database, packages, { signal }),
  'prune-stranded': (database) => pruneStranded(database),
  delete: (database, { bundle, pullFrom }, session) =>
    deleteBundle(database, bundle, { fetchManifests: createManifestFetcher(session, { pullFrom }) }),
  'delete-latest': (database, { package: name, eachChannel, pullFrom }, session) =>
    deleteLatest(database, name, createManifestFetcher(session, { pullFrom }), { eachChannel }),
  deprecate: (database, { bundles, ...options }, { signal }) =>
    deprecateTruncate(database, bundles, { ...options, signal }),
};

/** Applies a change to an open database. Throws as `editIndex`. */
export function applyIndexChange<K extends IndexChangeKind>(
  database: Database,
  change: IndexChange<K>,
  session: Session,
): Promise<ChangeReports[K]> {
  return changes[change.kind](database, change, session);
}

/**
 * Changes the database file of an index in one transaction. Throws OpmateError, NOT_FOUND for unknown packages and
 * bundles; then the database is unchanged.
 */
export async function editIndex<K extends IndexChangeKind>(
  file: string,
  change: IndexChange<K>,
  session: Session,
  options: Pick<EditOptions, 'outputFile' | 'vacuum' | 'name'> = {},
): Promise<ChangeReports[K]> {
  const { signal, logger } = session;
  return editDatabase(file, { ...options, signal, logger }, (database) =>
    applyIndexChange(database, change, session),
  );
}
