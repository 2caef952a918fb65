import { OpmateError, UsageError } from '../core/errors.js';

/** Fields that an image reference template can use. */
interface ImageTemplateData {
  Package: string;
  Name: string;
  Version: string;
}

/** Returns the pull specification of a bundle. Throws OpmateError INVALID for a field that does not exist. */
export type ImageTemplate = (data: ImageTemplateData) => string;

const templateName = 'image-ref-template';
const hint = 'use {{.Package}}, {{.Name}} and {{.Version}}, as in quay.io/example/{{.Package}}:v{{.Version}}';

/**
 * Parses an image reference template: text with the fields `{{.Package}}`, `{{.Name}}` and `{{.Version}}`, trim
 * markers and comments in the syntax of Go's text/template. Throws UsageError for any other action.
 */
export function parseImageTemplate(text: string): ImageTemplate {
  const parts: { text: string; field?: string; line: number }[] = [];
  let position = 0;
  let trims = false;
  for (;;) {
    const open = text.indexOf('{{', position);
    let literal = text.slice(position, open < 0 ? undefined : open);
    if (trims) literal = literal.trimStart();
    if (open < 0) {
      parts.push({ text: literal, line: 0 });
      break;
    }
    const line = text.slice(0, open).split('\n').length;
    const action = /^\{\{(?<before>-\s)?(?<body>\/\*.*?\*\/|[^"'`}]*?)(?<after>\s-)?\}\}/s.exec(
      text.slice(open),
    );
    if (action?.groups === undefined) {
      const isClosed = text.indexOf('}}', open) > 0;
      throw invalid(isClosed ? 'unsupported action' : 'unclosed action', line);
    }
    const { before, body = '', after } = action.groups;
    if (before !== undefined) literal = literal.trimEnd();
    parts.push({ text: literal, line });
    const field = /^\s*\.(?<name>[\p{L}_][\p{L}\p{N}_]*)\s*$/u.exec(body)?.groups?.['name'];
    if (field !== undefined) parts.push({ text: '', field, line });
    else if (!body.startsWith('/*')) throw invalid(`unsupported action ${JSON.stringify(body.trim())}`, line);
    trims = after !== undefined;
    position = open + action[0].length;
  }
  return (data) =>
    parts
      .map((part) => (part.field === undefined ? part.text : getValue(data, part.field, part.line)))
      .join('');
}

function getValue(data: ImageTemplateData, field: string, line: number): string {
  if (field === 'Package' || field === 'Name' || field === 'Version') return data[field];
  throw new OpmateError('INVALID', `template: ${templateName}:${line}: can't evaluate field ${field}`, {
    hint,
  });
}

function invalid(problem: string, line: number): OpmateError {
  return new UsageError(`invalid image reference template: template: ${templateName}:${line}: ${problem}`, {
    hint,
  });
}
