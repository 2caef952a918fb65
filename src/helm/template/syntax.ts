/** A template as Go's `text/template` parses it. */
export type TemplateNode =
  | { kind: 'text'; text: string }
  | { kind: 'action'; pipe: Pipeline; line: number }
  | ControlNode
  | { kind: 'template'; name: string; pipe: Pipeline | undefined; line: number }
  | { kind: 'break' | 'continue'; line: number };

export interface ControlNode {
  kind: 'if' | 'with' | 'range';
  pipe: Pipeline;
  body: TemplateNode[];
  otherwise: TemplateNode[];
  line: number;
}

/** Commands joined by `|`, with the variables for the result. */
export interface Pipeline {
  variables: string[];
  /** Operator `=` instead of `:=`. */
  isAssignment: boolean;
  commands: Operand[][];
}

export type Operand =
  | { kind: 'dot' }
  | { kind: 'nil' }
  | { kind: 'literal'; value: boolean | string | number | bigint }
  | { kind: 'function'; name: string }
  | { kind: 'field'; names: string[] }
  | { kind: 'variable'; name: string; names: string[] }
  | { kind: 'chain'; of: Operand; names: string[] }
  | { kind: 'pipeline'; pipe: Pipeline };
