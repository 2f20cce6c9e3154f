import { type EntryPoint, MiB, solving } from './entry-point.ts'

const nested = (levels: number): string => {
  let text = 'x = 1'
  for (let level = 0; level < levels; level += 1) text = `<code>${text}\n</code>\n"""\n\`\`\`\n`
  return text
}

const ANSWERS: readonly { name: string; unit: string; sizes: readonly number[]; text: (size: number) => string }[] = [
  { name: 'tags, strings and fences within each other', unit: 'levels', sizes: [20, 500, 2000, 8000], text: nested },
  { name: 'tags that never close', unit: 'tags', sizes: [1000, 10_000, 43_000], text: (n) => '<code>'.repeat(n) },
  {
    name: 'unclosed tags, one per line',
    unit: 'tags',
    sizes: [1000, 10_000, 37_000],
    text: (n) => '<code>\n'.repeat(n),
  },
  {
    name: 'fences without an end',
    unit: 'fences',
    sizes: [1000, 10_000, 26_000],
    text: (n) => '```python\n'.repeat(n),
  },
  { name: 'fences in strings', unit: 'strings', sizes: [1000, 10_000, 32_000], text: (n) => '"""\n```\n'.repeat(n) },
  {
    name: 'lines of prose',
    unit: 'lines',
    sizes: [500, 2000, 7900],
    text: (n) => 'Now we call f(x) and it is fine:\n'.repeat(n),
  },
  {
    name: 'one line of white space',
    unit: 'characters',
    sizes: [10_000, 100_000, 260_000],
    text: (n) => `x${' '.repeat(n)}y`,
  },
  {
    name: 'one line of brackets',
    unit: 'characters',
    sizes: [10_000, 100_000, 260_000],
    text: (n) => '(['.repeat(n / 2),
  },
  { name: 'thoughts within thoughts', unit: 'tags', sizes: [1000, 10_000, 37_000], text: (n) => '<think>'.repeat(n) },
  {
    name: 'a script of one long line',
    unit: 'characters',
    sizes: [10_000, 100_000, 260_000],
    text: (n) => `\`\`\`python\nx = '${'a'.repeat(n)}'\n\`\`\``,
  },
]

export const MODEL_ENTRY_POINTS: readonly EntryPoint[] = ANSWERS.map(({ text, ...rest }) => ({
  ...rest,
  name: `answer: ${rest.name}`,
  from: 'a model',
  limitBytes: 4 * MiB,
  prepare: (size) => {
    const answer = text(size)
    return solving([], { model: () => Promise.resolve(answer), maxRetries: 1 })
  },
}))
