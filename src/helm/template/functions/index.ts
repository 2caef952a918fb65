import type { TemplateFunction } from '../evaluate.js';
import { TemplateFault, evaluationFault } from '../fault.js';
import { getField } from '../go-values.js';
import { collectionFunctions } from './collections.js';
import { type FunctionTable, define } from './define.js';
import { encodingFunctions } from './encoding.js';
import { numberFunctions } from './numbers.js';
import { patternFunctions } from './patterns.js';
import { placeholderFunctions } from './placeholders.js';
import { pathFunctions, textFunctions } from './text.js';
import { timeFunctions } from './times.js';
import { versionFunctions } from './versions.js';

const helmOwn: FunctionTable = {
  include: define('sa', ([name, data], { include }) => include(name, data)),
  tpl: define('sa', ([text, data], { renderText }) => renderText(text, data)),
  required: define('sa', ([message, value]) => {
    if (value === null || value === '') throw new TemplateFault('refused', message);
    return value;
  }),
  fail: define('s', ([message]) => {
    throw new TemplateFault('refused', message);
  }),
  call: define('aa*', ([value, ...args]) => {
    if (value === null) throw evaluationFault('call of nil');
    return getField(value, 'Call', args);
  }),
};

/** Functions of Helm 3 by name: those of Go templates, of sprig without `env` and `expandenv`, and of Helm. */
export const helmFunctions: ReadonlyMap<string, TemplateFunction> = new Map(
  [
    textFunctions,
    pathFunctions,
    collectionFunctions,
    numberFunctions,
    encodingFunctions,
    patternFunctions,
    versionFunctions,
    timeFunctions,
    placeholderFunctions,
    helmOwn,
  ].flatMap((table) => Object.entries(table)),
);
