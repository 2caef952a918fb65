import type { Diagnostic } from '../../core/diagnostic.js';
import type { Logger } from '../../core/log.js';
import type { JsonObject } from '../../document/json.js';
import type { RenderedDeployment } from '../documents/render-deployments.js';
import type { InventoryPlace, KeptPin, ReadInventory, Revision } from '../inventory.js';
import type { ChangedField, PresentOwner } from '../live.js';
import type { ObjectId } from '../objects.js';

/** Part of a rendered deployment that is applied. */
export type Applicable = Pick<
  RenderedDeployment,
  | 'name'
  | 'installNamespace'
  | 'packageName'
  | 'bundleName'
  | 'version'
  | 'clouds'
  | 'choice'
  | 'isCrdUpgradeChecked'
  | 'healthChecks'
  | 'objects'
  | 'hash'
> & { pins: readonly KeptPin[] };

/** Policy for fields that others have changed since the deployment was applied. */
type HealPolicy = 'report' | 'own' | 'all';

/** Present owner of objects to adopt; without a name, all of this kind. */
export interface AdoptionSource {
  kind: Exclude<PresentOwner['kind'], 'controller'>;
  /** `NAMESPACE/NAME` of a deployment, Helm release, or ClusterServiceVersion. */
  name?: string;
}

/** Options of applying a deployment. */
export interface ApplyOptions {
  /**
   * Fields changed by others: `report` restores missing objects and fields only, `own` also fields that the deployment
   * has applied before, `all` every field of the render. Default `report`.
   */
  heal?: HealPolicy;
  /** Take over existing objects of nobody's deployment; they are never deleted. */
  takeOver?: boolean;
  /** Adopt objects of this owner: they become part of the deployment. */
  adopt?: AdoptionSource;
  /** Kinds to omit if the cluster lacks them. */
  optionalKinds?: ReadonlySet<string> | 'all';
  /** Refuse unsafe changes of CustomResourceDefinitions; default true. */
  isCrdUpgradeChecked?: boolean;
  /** Delete definitions and namespaces too, with their content. */
  force?: boolean;
  /** Revision of the render. */
  rollbackTo?: number;
  /** Set of deployments to which this one belongs. */
  set?: string;
  now: () => Date;
  /** Resolves after this time. Throws CancelledError as soon as `signal` is aborted. */
  sleep: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
  logger: Logger;
  signal?: AbortSignal | undefined;
}

/**
 * Change of an object: `heal` restores fields of the current revision, `leave` does not, `release` ends the ownership of
 * an object that existed before, `keep` would be a removal with `force`.
 */
export type ObjectChange =
  'add' | 'take over' | 'adopt' | 'change' | 'heal' | 'leave' | 'remove' | 'release' | 'keep';

/** A step of a plan. */
export interface PlannedChange {
  id: ObjectId;
  change: ObjectChange;
  /** Fields that differ from the cluster; empty for other changes than those of existing objects. */
  fields: ChangedField[];
  /** Present owner of an object to take over or adopt. */
  owner?: PresentOwner;
}

/** Plan of applying a deployment. */
export interface ApplyPlan {
  deployment: Applicable;
  place: InventoryPlace;
  read: ReadInventory;
  /** Revision that is on the cluster. */
  current: Revision | undefined;
  /** The source and its render are those of the current revision. */
  isCurrent: boolean;
  objects: readonly PlacedObject[];
  /** Objects of optional kinds that the cluster lacks. */
  omitted: readonly ObjectId[];
  /** Changes without unchanged objects. */
  changes: PlannedChange[];
  /** Problems that prevent applying; nothing was changed. */
  findings: Diagnostic[];
  /** Keys of objects whose fields are applied even if others manage them. */
  forced: ReadonlySet<string>;
  live: ReadonlyMap<string, JsonObject>;
  /** SHA-256 of identity, render, removals and takeovers: what an approval covers. */
  approval: string;
}

/** An object with its namespace. */
export interface PlacedObject extends ObjectId {
  value: JsonObject;
}
