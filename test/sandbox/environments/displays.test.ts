import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createSandglass, type RunEvent, type Sandglass } from '../../../src/index.ts'
import { makeCacheDir } from '../../support/environments/fixture.ts'
import { lacksIndex } from '../../support/environments/real-index.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { describeShownPackages } from '../../support/session-package-rules.ts'
import { fencesOf, printedBy, textOf, withClaims } from '../../support/run-example.ts'

const { skip } = await requireLocalEngine()
const PACKAGES = ['matplotlib', 'pandas', 'plotly', 'polars', 'pyarrow', 'scikit-learn', 'seaborn']
const TABLE = 'application/vnd.sandglass.table+json'

describe.skipIf(skip || lacksIndex)('what a script shows with packages of the index', () => {
  const cache = makeCacheDir()
  let sandglass: Sandglass

  beforeAll(async () => {
    sandglass = await createSandglass({
      engine: 'local',
      poolSize: 1,
      dependencies: PACKAGES,
      environments: { cacheDir: cache.path },
      limits: { executionTimeoutSec: 60, memoryBytes: 1024 * 1024 * 1024 },
    })
    // With their byte code: without it, the first runs would compile what they import, one after the other.
    await sandglass.prepare(PACKAGES)
  }, 240_000)
  afterAll(async () => {
    await sandglass?.close()
    cache[Symbol.dispose]()
  })

  test('docs/displays.md: each value that a comment of the example names is what a run gives', () => {
    const page = readFileSync(join(import.meta.dirname, '../../../docs/displays.md'), 'utf8')
    const { program, claims } = withClaims(textOf(fencesOf(page), 'ts'))
    const begin = `import { createSandglass } from 'sandglass'
await using sg = await createSandglass({
  engine: 'local', poolSize: 0, environments: { cacheDir: ${JSON.stringify(cache.path)} },
  limits: { executionTimeoutSec: 60, memoryBytes: ${1024 ** 3} },
})
`
    expect({ claims, printed: printedBy(begin + program) }).toEqual({ claims: 2, printed: '' })
  }, 240_000)

  test('figures are pictures, with plt.show() or without, each once, and tables are tables', async () => {
    const events: RunEvent[] = []
    const script = `
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt, pandas as pd
print("before")
display(pd.DataFrame({"n": [1, 2], "word": ["a", None]}, index=pd.Index(["x", "y"], name="key")))
print("between")
plt.plot([1, 2, 3], [1, 4, 9], label="squares")
plt.title("Squares")
plt.show()
figure, axes = plt.subplots()
axes.bar(["a", "b"], [1, 2])
plt.savefig("bars.png")
emit_result(pd.DataFrame({"a": [1]}))
`
    const result = await sandglass.run(script, { onEvent: (event) => void events.push(event) })
    expect(result).toMatchObject({ error: null, warnings: [], stderr: '', finalData: [{ a: 1 }] })
    const ofText = expect.stringMatching(/^(str|object)$/) as string // by the version of pandas
    const [table, squares, bars] = result.displays
    expect(result.displays).toHaveLength(3)
    expect(table).toMatchObject({ kind: 'display', leftOut: [], after: { stdout: 7 } })
    expect(table?.data['text/html']).toContain('<th>x</th>')
    expect(table?.data['text/plain']).toMatch(/^ +n +word\nkey *\nx +1 +a\ny +2 +(NaN|None)$/)
    expect(JSON.parse(table?.data[TABLE] ?? '')).toEqual({
      columns: [
        { name: 'key', type: ofText, index: true },
        { name: 'n', type: 'int64' },
        { name: 'word', type: ofText },
      ],
      rows: [
        ['x', 1, 'a'],
        ['y', 2, null],
      ],
      row_count: 2,
      column_count: 2,
    })
    expect(squares?.data['text/plain']).toBe(
      "Figure of 640 x 480 pixels: axes 'Squares' with 1 line of 3 points ('squares')",
    )
    expect(bars?.data['text/plain']).toBe('Figure of 640 x 480 pixels: axes with 2 bars')
    for (const figure of [squares, bars]) {
      expect(Buffer.from(figure?.data['image/png'] ?? '', 'base64').subarray(0, 6)).toEqual(
        Buffer.from('\x89PNG\r\n', 'latin1'),
      )
      expect(figure).toMatchObject({ kind: 'display', leftOut: [], after: { stdout: 15 } })
    }
    const shown = events.filter((event) => event.type === 'display')
    expect(shown.map(({ place }) => place)).toEqual([0, 1, 2])
    expect(shown[1]).toEqual({ type: 'display', executionId: result.executionId, place: 1, ...squares })
  }, 60_000)

  test('the picture of a figure is the one that matplotlib saves with a tight box, wherever its parts are placed', async () => {
    const script = `
import base64, io
import matplotlib.pyplot as plt
def lines():
    plt.plot([1e6, 3e6, 2e6], label="a long label")
    plt.title("T"); plt.xlabel("x"); plt.ylabel("y"); plt.suptitle("S"); plt.legend(bbox_to_anchor=(1.05, 1), loc="upper left")
def bars():
    plt.bar(["a long name", "b"], [1, 2]); plt.xticks(rotation=70); plt.annotate("far", (0, 0), xytext=(1.9, 2.5), arrowprops={})
def grid():
    figure, axes = plt.subplots(2, 2, sharex=True)
    for place, each in enumerate(axes.flat):
        each.plot([1, 10**place]); each.set_ylabel("y")
    axes[0, 0].xaxis.tick_top(); figure.align_ylabels()
def picture(): plt.imshow([[1, 2], [3, 4]]); plt.title("P")
def pie(): plt.pie([1, 2, 3], labels=["a", "b", "c"])
def scatter(): plt.scatter([1, 2], [3, 4], c=[5, 6]); plt.colorbar(label="c")
def engine(): plt.subplots(2, 2, layout="constrained")
def polar(): plt.polar([1, 2], [3, 4])
def solid(): plt.figure().add_subplot(projection="3d").plot([1, 2], [3, 4], [5, 6])
def legend(): plt.plot([1], label="a"); plt.legend(bbox_to_anchor=(0, 1.02, 1, 0.1), loc="lower left", mode="expand")
def hidden():
    axes = plt.figure().add_subplot(); axes.plot([0, 100], [0, 100]); axes.text(130, 50, "far")
    axes.xaxis.set_visible(False); axes.yaxis.set_visible(False)
def apart():
    figure, axes = plt.subplots(figsize=(9, 3)); axes.imshow([[1, 2], [3, 4]])
    figure.text(1.9, 0.5, "beside the picture", transform=axes.transAxes)
def event():
    figure = plt.figure(); plt.plot([1, 2])
    figure.canvas.mpl_connect("draw_event", lambda _: figure.suptitle("S", y=1.1))
saved = []
for draw in (lines, bars, grid, picture, pie, scatter, engine, polar, solid, legend, hidden, apart, event):
    draw(); content = io.BytesIO()
    plt.savefig(content, bbox_inches="tight", pad_inches=0.1); plt.close()
    saved.append(base64.b64encode(content.getvalue()).decode())
    draw(); plt.show()
emit_result(saved)
`
    const { error, displays, finalData } = await sandglass.run(script)
    expect(error).toBeNull()
    expect(displays.map(({ data }) => data['image/png'])).toEqual(finalData)
  }, 60_000)

  test('a figure in a result is shown and named there, also one of plotly', async () => {
    const script = `
import matplotlib.pyplot as plt, plotly.graph_objects as go, polars as pl
figure, axes = plt.subplots()
axes.scatter([1, 2], [3, 4])
drawn = go.Figure([go.Bar(x=["a"], y=[1])], layout={"title": "T"})
drawn.show()
emit_result({"axes": axes, "figure": figure, "drawn": drawn, "rows": pl.DataFrame({"n": [1, None]})})
`
    const result = await sandglass.run(script)
    const description = { display: 1, text: 'Figure of 640 x 480 pixels: axes with 2 scattered points' }
    expect(result).toMatchObject({
      error: null,
      stderr: '',
      finalData: {
        axes: description,
        figure: description,
        drawn: { display: 2, text: "Plotly figure 'T': 1 bar" },
        rows: [{ n: 1 }, { n: null }],
      },
    })
    expect(result.displays).toHaveLength(3)
    const [shown] = result.displays
    expect(JSON.parse(shown?.data['application/vnd.plotly.v1+json'] ?? '')).toMatchObject({ data: [{ type: 'bar' }] })
  }, 60_000)

  test('pictures of PIL, models of scikit-learn and plots of seaborn are shown', async () => {
    const script = `
import pandas as pd, seaborn as sns
from PIL import Image
from sklearn.linear_model import LogisticRegression
image = Image.new("RGB", (8, 4), "red")
display(image)
image.show()
display(LogisticRegression(C=2))
sns.barplot(pd.DataFrame({"word": ["a", "b"], "n": [1, 2]}), x="word", y="n", errorbar=None)
`
    const { error, stderr, displays } = await sandglass.run(script)
    expect({ error, stderr }).toEqual({ error: null, stderr: '' })
    expect(displays.map(({ data }) => [...Object.keys(data).toSorted(), data['text/plain']])).toEqual([
      ['image/png', 'text/plain', 'Picture of 8 x 4 pixels (RGB)'],
      ['image/png', 'text/plain', 'Picture of 8 x 4 pixels (RGB)'],
      ['text/html', 'text/plain', 'LogisticRegression(C=2)'],
      ['image/png', 'text/plain', expect.stringContaining("2 bars, x axis 'word', y axis 'n'")],
    ])
    expect(displays[2]?.data['text/html']).toContain('LogisticRegression')
    const size = Buffer.from(displays[0]?.data['image/png'] ?? '', 'base64').subarray(16, 24)
    expect([size.readUInt32BE(0), size.readUInt32BE(4)]).toEqual([8, 4])
  }, 60_000)

  test('a picture is bounded before it is rendered', async () => {
    const script = `
import matplotlib.pyplot as plt, struct
for size, place in (((60, 40), (0.5, 0.5)), ((6, 4), (900, 900))):
    plt.figure(figsize=size)
    plt.plot([1, 2])
    plt.figtext(*place, "text")
emit_result(1)
`
    const result = await sandglass.run(script)
    expect(result).toMatchObject({ error: null, warnings: [] })
    const pixels = result.displays.map(({ data }) => {
      const bytes = Buffer.from(data['image/png'] ?? '', 'base64')
      return bytes.readUInt32BE(16) * bytes.readUInt32BE(20)
    })
    expect(pixels).toHaveLength(2)
    for (const count of pixels) expect(count).toBeLessThan(5_000_000)
  }, 60_000)

  test('reaches the model of an agent: pictures as images, anything else as text', async () => {
    const tool = sandglass.asTool()
    const script = `
import matplotlib.pyplot as plt, pandas as pd
plt.plot([1, 2])
plt.show()
display(pd.DataFrame({"n": [1]}))
emit_result(1)
`
    const answer = await tool.execute({ script })
    const text = 'Figure of 640 x 480 pixels: axes with 1 line of 2 points'
    expect(answer).toMatchObject({
      ok: true,
      displays: [{ text, picture: 'display-1.png' }, { text: expect.stringContaining('n') as string }],
    })
    expect(tool.toModelOutput({ output: answer })).toMatchObject({
      type: 'content',
      value: [{ type: 'text' }, { type: 'file', mediaType: 'image/png', filename: 'display-1.png' }],
    })
    const { content } = await tool.mcp.handler({ script })
    expect(content).toMatchObject([{ type: 'text' }, { type: 'image', mimeType: 'image/png' }])
    expect(JSON.stringify(answer)).not.toContain('iVBOR')
  }, 60_000)

  describeShownPackages(() => sandglass)

  test('the last expression of a cell is a display, and open figures follow it', async () => {
    await using session = await sandglass.session()
    const shown = async (cell: string): Promise<string[]> => {
      const { error, displays } = await session.run(cell)
      expect(error).toBeNull()
      return displays.map(({ kind, data }) => `${kind} ${Object.keys(data).toSorted().join(' ')}`)
    }
    expect(await shown('import pandas as pd, matplotlib.pyplot as plt\ndf = pd.DataFrame({"n": [1]})\ndf')).toEqual([
      `result ${TABLE} text/html text/plain`,
    ])
    expect(await shown('figure = plt.figure()\nplt.plot([1, 2])\nNone')).toEqual(['display image/png text/plain'])
    expect(await shown('figure')).toEqual(['result image/png text/plain'])
    expect(await shown('plt.plot([1]); plt.show()\n1;')).toEqual(['display image/png text/plain'])
    // Axes are shown by their figure, which is not shown again.
    expect(await shown('df.plot()')).toEqual(['result image/png text/plain'])
    expect(await shown('display(df.plot())')).toEqual(['display image/png text/plain'])
  }, 60_000)

  test('native threads of numpy, scikit-learn and pyarrow, and processes of joblib, work again after a rollback', async () => {
    const imports = `
import os
os.environ.update(OPENBLAS_NUM_THREADS="2", OMP_NUM_THREADS="2") # one thread is what the harness sets
import numpy as np, pyarrow as pa, joblib
from sklearn.ensemble import HistGradientBoostingClassifier
a = np.arange(250_000, dtype=float).reshape(500, 500)
table = pa.table({"k": [n % 7 for n in range(10_000)]})
def product(): return float((a @ a)[1, 1])
def fit(): return float(HistGradientBoostingClassifier(max_iter=2).fit(a[:, :2], a[:, 0] > 100_000).score(a[:, :2], a[:, 0] > 100_000))
def group(): return table.group_by("k").aggregate([("k", "count")]).num_rows
def parallel(): return joblib.Parallel(n_jobs=2)(joblib.delayed(abs)(-n) for n in range(3))
def threads(): return len(os.listdir("/proc/self/task"))
`
    const used = '[product(), fit(), group(), parallel()]'
    await using session = await sandglass.session()
    await using unrepaired = await sandglass.session()
    const first = await session.run(`${imports}\n${used}`)
    expect(first).toMatchObject({ error: null, value: [expect.any(Number), expect.any(Number), 7, [0, 1, 2]] })
    expect(await session.run('threads() > 2')).toMatchObject({ value: true })
    expect(await session.run('a[:] = 0; table = None; os._exit(1)')).toMatchObject({ state: 'rolled-back' })
    expect(await session.run(used)).toMatchObject({ error: null, value: first.value })
    // Without its repair, OpenMP waits for the threads that it had before the fork.
    const broken = 'from sandglass_harness.session import repairs; repairs._repair_openmp = lambda: None'
    await unrepaired.run(`${imports}\n${broken}\nfit()`)
    expect(await unrepaired.run('os._exit(1)')).toMatchObject({ state: 'rolled-back' })
    const waits = await unrepaired.run('fit()', { timeoutSec: 2 })
    expect(waits.error).toContain('it waits for a lock that nothing can release any more')
  }, 60_000)

  test('a session knows that threads of polars outlive no rollback: it keeps no such state, and says why a later call waits', async () => {
    await using session = await sandglass.session()
    const sum = 'table.lazy().group_by(pl.col("n") % 7).agg(pl.len()).collect().height'
    const used = await session.run(`import polars as pl\ntable = pl.DataFrame({"n": list(range(1000))})\n${sum}`)
    const threads = expect.arrayContaining(['the native threads of polars']) as string[]
    expect(used).toMatchObject({ error: null, value: 7, checkpoint: { grade: 'partial', lacks: threads } })
    await expect(session.checkpoint()).rejects.toMatchObject({ code: 'checkpoint_unavailable' })
    expect(await session.run('import os; os._exit(1)')).toMatchObject({ state: 'rolled-back' })
    const waits = await session.run(sum, { timeoutSec: 2 })
    expect(waits).toMatchObject({ status: 'timed-out', state: 'rolled-back' })
    expect(waits.error).toContain('it waits for a lock that nothing can release any more')
    expect(await session.run('table["n"].to_list()[:2]')).toMatchObject({ value: [0, 1] })
  }, 60_000)
})
