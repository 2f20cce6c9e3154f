import { CAPS } from '../../../src/protocol/index.ts'
import { type EntryPoint, KiB, NEARLY_SECRET, running, SECRETS } from './entry-point.ts'
import { line } from './peer.ts'

const { KEY = '', SHORT = '' } = SECRETS
/** The maximum number of displays of the maximum size in one run. */
const COUNT = CAPS.displaysBytes / CAPS.displayBytes
const PARTS: readonly { name: string; text: string; picture: string }[] = [
  { name: 'text and pictures that nearly hold a secret', text: NEARLY_SECRET, picture: `${NEARLY_SECRET.repeat(3)}d ` },
  { name: 'text full of secrets', text: `${SHORT} `, picture: 'picture ' },
]

/** Displays of a run, half text and half base64. */
export const DISPLAY_ENTRY_POINTS: readonly EntryPoint[] = PARTS.map(({ name, text, picture }) => ({
  name: `display: ${name}`,
  from: 'a script',
  unit: 'KiB each',
  // The last one leaves room for the other fields of the line.
  sizes: [64, 512, CAPS.displayBytes / KiB - 1],
  limitBytes: CAPS.displaysBytes,
  prepare: (size) => {
    const half = (size * KiB) / 2
    const html = text.repeat(half / text.length)
    const png = Buffer.alloc((half / 4) * 3, picture.repeat(KiB)).toString('base64')
    const display = line(
      'display',
      `"kind":"display","data":{"text/html":"${html}","image/png":"${png}"},"left_out":[],"after":{"stdout":0}`,
    )
    return running(
      Array.from({ length: COUNT }, () => display),
      { secrets: { KEY, SHORT } },
    )
  },
}))
