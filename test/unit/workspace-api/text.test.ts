import { describe, expect, test } from 'vitest'
import {
  buildBlockSpec,
  type CodeBlockDelimiter,
  codeExecutionResultText,
  extractCodeBlock,
  type File,
  isTextMime,
  normalizeGlobs,
  outputSpecFromJson,
} from '../../../src/workspace-api/index.ts'
import { normalizeCwd, relativeGlobs } from '../../../src/workspace-api/globs.ts'
import { measureBest } from '../../support/measure-best.ts'
import { workspaceCases } from '../../support/workspace-cases.ts'

describe('WS-10: globs with prefixes', () => {
  test.each(workspaceCases('normalize_globs')['cases'] ?? [])('$name', ({ input, expected }) => {
    expect(normalizeGlobs(input as string[])).toEqual(expected ?? [])
  })

  test.each([
    ['$WORKSPACE_DIR', '.'],
    ['${WORKSPACE_DIR}/', '.'],
    ['$OUTPUT_DIR', 'out'],
    // The reference takes the beginning of a longer name for a variable.
    ['$WORK_DIRfoo', '$WORK_DIRfoo'],
    ['$OUTPUT_DIR_demo/x', '$OUTPUT_DIR_demo/x'],
    ['$RUN_DIR/x', '$RUN_DIR/x'],
    ['${SKILL_NAME}/x', '${SKILL_NAME}/x'],
    ['${WORK_DIR/x', '${WORK_DIR/x'],
    ['$OUTPUT_DIR//a', 'out//a'],
    ['$constructor/a', '$constructor/a'],
  ])('%s becomes %s', (given, expected) => {
    expect(normalizeGlobs([given, ' ', ''])).toEqual([expected])
  })

  test('a workspace is asked for plain paths, and never for its root', () => {
    expect(relativeGlobs(['.', './', '$WORKSPACE_DIR', './out/*', 'out//a', 'out/'])).toEqual(['out/*', 'out/a', 'out'])
  })
})

describe('working directories', () => {
  // Its list of roots is that of a tool of the reference; here every directory of the workspace may be one.
  const cases = (workspaceCases('workspace_paths')['cases'] ?? []).filter(
    ({ fn, input }) => fn === 'normalize_cwd' && input !== 'etc/passwd',
  )

  test.each(cases.filter(({ expected }) => expected !== undefined))('$input', ({ input, expected }) => {
    expect(normalizeCwd(input as string)).toBe(expected)
  })

  test.each(cases.filter(({ expected }) => expected === undefined))(
    '$input is refused',
    ({ input, error_contains }) => {
      expect(() => normalizeCwd(input as string)).toThrow(error_contains)
    },
  )

  test.each(['a/../..', '$OUTPUT_DIR/../..', '/../x'])('%s must stay within the workspace', (cwd) => {
    expect(() => normalizeCwd(cwd)).toThrow('cwd: ')
  })
})

describe('WS-09: an output spec in JSON', () => {
  const cases = workspaceCases('output_spec_json')['cases'] ?? []

  test.each(cases.filter(({ error }) => error === true))('$input is refused', ({ input }) => {
    expect(() => outputSpecFromJson(input)).toThrow('output spec, max_files: "bad" is not a whole number')
  })

  test.each(cases.filter(({ error }) => error === undefined))('$input', ({ input, expected }) => {
    const { max_files, max_file_bytes, max_total_bytes, name_template, ...rest } = expected as Record<string, unknown>
    const renamed = {
      maxFiles: max_files,
      maxFileBytes: max_file_bytes,
      maxTotalBytes: max_total_bytes,
      nameTemplate: name_template,
    }
    expect(outputSpecFromJson(input)).toEqual(
      Object.fromEntries(Object.entries({ ...rest, ...renamed }).filter(([, value]) => value !== undefined)),
    )
  })

  test('keys in snake_case win over those of Go, and those over fields', () => {
    expect(
      outputSpecFromJson({ MaxFiles: 1, max_files: 2, maxFiles: 3, NameTemplate: 'a', nameTemplate: 'b' }),
    ).toEqual({
      globs: [],
      maxFiles: 2,
      nameTemplate: 'a',
    })
    expect(outputSpecFromJson({ globs: ['a'], max_files: null })).toEqual({ globs: ['a'] })
  })

  test.each([
    ['[]', 'output spec: an array is not an object'],
    ['{', 'output spec: it is not JSON: '],
    ['{"glob":["a"]}', 'output spec: unknown key "glob". Did you mean "globs"?'],
    ['{"Globs":"a"}', 'output spec, Globs: "a" is not an array of strings'],
    ['{"max_files":-1}', 'output spec, max_files: -1 is not a whole number from 0'],
    ['{"save":"yes"}', 'output spec, save: "yes" is not true or false'],
    ['{"__proto__":1}', 'output spec: unknown key "__proto__"'],
    ['['.repeat(2000), 'output spec: it is not JSON: nested deeper'],
  ])('%s is refused', (json, problem) => {
    expect(() => outputSpecFromJson(json)).toThrow(problem)
  })
})

describe('WS-20: blocks of code in a text', () => {
  test.each(workspaceCases('extract_code_block')['cases'] ?? [])('$name', ({ input, delimiter, expected }) => {
    expect(extractCodeBlock(input as string, delimiter as CodeBlockDelimiter)).toEqual(expected ?? [])
  })

  test.each<[string, string, string, { language: string; code: string }[]]>([
    ['an end inside of a line', '```', '```py\ns = "```" + x\n```', [{ language: 'py', code: 's = "```" + x\n' }]],
    ['an end behind the last line', '```', '```py\nx```\ny', [{ language: 'py', code: 'x' }]],
    ['no other end than one inside of a line', '```', '```py\nx``` y', [{ language: 'py', code: 'x' }]],
    ['more words behind the language', '```', '```python title=x\n1\n```', [{ language: 'python', code: '1\n' }]],
    ['CRLF', '```', '```py\r\n1\r\n```\r\n', [{ language: 'py', code: '1\r\n' }]],
    ['no end', '```', '```py\n1\n', []],
    ['no line behind the opening', '```', '```py', []],
    ['an empty block', '```', '```py\n```', [{ language: 'py', code: '' }]],
  ])('%s', (_what, end, input, blocks) => {
    expect(extractCodeBlock(input, { start: '```', end })).toEqual(blocks)
  })

  test('other delimiters are taken literally, and an empty one is refused', () => {
    expect(extractCodeBlock('[.*] sh \nls\n[/.*]', { start: '[.*]', end: '[/.*]' })).toEqual([
      { language: 'sh', code: 'ls\n' },
    ])
    expect(() => extractCodeBlock('x', { start: '', end: '```' })).toThrow('delimiter: start is empty')
  })

  test.each([
    ['openings without an end', '```x\n', '<end>'],
    ['ends inside of lines', '```x\na```b', '```'],
    ['blanks behind ends', `\`\`\`x\na\`\`\`${' '.repeat(50)}b`, '```'],
  ])('a megabyte of %s takes no time', (_what, piece, end) => {
    const text = piece.repeat(Math.ceil(2 ** 20 / piece.length))
    expect(measureBest(() => extractCodeBlock(text, { start: '```', end }), 1)).toBeLessThan(250)
  })
})

describe('WS-21: the program of a block', () => {
  const cases = workspaceCases('build_block_spec')['cases'] ?? []

  test.each(cases.filter(({ error }) => error === undefined))('$language', ({ index, language, expected }) => {
    const { mode, ...rest } = expected as Record<string, string>
    const wanted = { ...rest, mode: Number.parseInt(mode ?? '', 8), args: [] }
    expect(buildBlockSpec(index as number, { language: language as string })).toEqual(wanted)
  })

  test.each(cases.filter(({ error }) => error !== undefined))(
    '"$language" is refused',
    ({ index, language, error }) => {
      expect(() => buildBlockSpec(index as number, { language: language as string })).toThrow(error)
    },
  )

  test.each([
    [' BASH ', 'code_2.sh', 0o755, 'bash'],
    ['sh', 'code_2.sh', 0o755, 'bash'],
    ['js', 'code_2.js', 0o644, 'node'],
    ['TypeScript', 'code_2.ts', 0o644, 'node'],
  ])('%s', (language, file, mode, cmd) => {
    expect(buildBlockSpec(2, { language })).toEqual({ file, mode, cmd, args: [] })
  })

  test.each([-1, 0.5, Number.NaN])('the index %s is refused', (index) => {
    expect(() => buildBlockSpec(index, { language: 'sh' })).toThrow('index: ')
  })
})

test.each([
  ...(workspaceCases('is_text_mime')['cases'] ?? []).map(({ input, expected }) => [input, expected]),
  ['application/problem+JSON', true],
  ['TEXT/CSV ;charset=x', true],
  ['application/xml', false],
  ['application/+json', false],
  ['text/', false],
] as [string, boolean][])('WS-28: %j is a text: %s', (mimeType, expected) => {
  expect(isTextMime(mimeType)).toBe(expected)
})

describe('WS-19: a result as text', () => {
  const fileOf = (name: string): File => ({
    name,
    content: '',
    data: new Uint8Array(),
    mimeType: 'text/plain',
    sizeBytes: 0,
    truncated: false,
  })

  test.each(workspaceCases('result_string')['cases'] ?? [])('$name', ({ output, output_files: names, expected }) => {
    const outputFiles = (names as string[]).map(fileOf)
    expect(codeExecutionResultText({ output: output as string, outputFiles })).toBe(expected)
  })

  test('output and files are both there', () => {
    expect(codeExecutionResultText({ output: 'hi\n', outputFiles: [fileOf('a')] })).toBe(
      'Code execution result:\nhi\n Saved output files:\na',
    )
  })
})
