import type { Diagnostic, DocumentPath, Severity } from '../../core/diagnostic.js';
import type { CatalogBundle } from '../catalog-bundles.js';
import type { PackageOwners } from '../package-owners.js';
import type { CheckedBundle, CheckedFile } from './bundle-model.js';

/** Suites of checks; `certified` and `community` each run with `common`. */
export type Suite = 'common' | 'community' | 'isv';

/** An operator of a repository as checks see it. */
export interface CheckedOperator {
  name: string;
  directory: string;
  config: CheckedFile;
  isFbc: boolean;
  bundles: CheckedBundle[];
}

/** What all checks may use. */
export interface CheckContext {
  /** Value of `config.yaml` of the repository. */
  repositoryConfig: CheckedFile;
  /** OpenShift versions that indexes exist for, oldest first. */
  supported: readonly string[];
  /** Packages of all committed catalogs. */
  owners: PackageOwners;
}

/** A catalog of an operator, with the facts that checks need. */
export interface CheckedCatalog {
  catalog: string;
  operator: string;
  file: string;
  bundles: CatalogBundle[];
}

/** Place and remedy of a finding. */
interface FindingDetails {
  file?: string | undefined;
  line?: number | undefined;
  column?: number | undefined;
  hint?: string | undefined;
}

/** Receives the findings of one check. */
export type ReportFinding = (severity: Severity, problem: string, details?: FindingDetails) => void;

interface CheckTraits {
  /** Name in operator-pipelines. */
  name: string;
  suite: Suite;
  summary: string;
  /** Not run for operators with file-based catalogs. */
  skipsFbc?: boolean;
}

/** A check of a bundle, operator or catalog. It may throw an OpmateError, which becomes a finding. */
export type Check = CheckTraits &
  (
    | {
        of: 'bundle';
        run(
          bundle: CheckedBundle,
          operator: CheckedOperator,
          report: ReportFinding,
          context: CheckContext,
        ): void | Promise<void>;
      }
    | {
        of: 'operator';
        run(operator: CheckedOperator, report: ReportFinding, context: CheckContext): void | Promise<void>;
      }
    | {
        of: 'catalog';
        run(catalog: CheckedCatalog, report: ReportFinding, context: CheckContext): void | Promise<void>;
      }
  );

/** A finding of a check, whose name is its code. */
export type RepositoryFinding = Diagnostic & { package?: string | undefined };

/** Returns the place of a path in a file. */
export function placeIn(file: CheckedFile, path: DocumentPath, hint?: string): FindingDetails {
  return { file: file.file, ...file.findPlace(path), hint };
}
