import { expect, test } from 'vitest'
import { warnOfPip } from '../../../src/environments/index.ts'
import { measureBest } from '../../support/measure-best.ts'

test.each([
  ['subprocess.run([sys.executable, "-m", "pip", "install", "demo"])'],
  ['subprocess.run([\n    sys.executable,\n    "-m",\n    "pip",\n    "install",\n    "demo",\n])'],
  ["os.system('pip install demo')"],
  ['os.system(f"{sys.executable} -m pip install demo")'],
  ['os.system("cd /tmp && pip3 install demo > /dev/null 2>&1")'],
  ['os.system("sudo pip install demo")'],
  ['os.system("/usr/bin/pip install demo")'],
  ['os.system("uv pip install demo")'],
  ['get_ipython().system("pip install demo")'],
  ['    !pip install demo'],
  ['%pip install demo'],
])('warns of %j', (script) => {
  expect(warnOfPip(`import os, sys, subprocess\n${script}\nprint(1)\n`)).toMatch(
    /cannot install packages.*dependencies: \[\.\.\.\] or --with NAME/s,
  )
})

test.each([
  ['# pip install demo'],
  ['    # os.system("pip install demo")'],
  ['raise ImportError("Run pip install demo first")'],
  ['x = "pip list"'],
  ['pip = install = 1'],
  ['print("pipe installation")'],
])('does not warn of %j', (script) => {
  expect(warnOfPip(`${script}\n`)).toBeUndefined()
})

test.each([
  ['"'.repeat(1_000_000)],
  ['"pip '.repeat(200_000)],
  ['!'.repeat(1_000_000)],
  [' '.repeat(1_000_000)],
  ['"; ; '.repeat(200_000)],
])('reads a large script in time proportional to its length (%#)', (script) => {
  expect(measureBest(() => expect(warnOfPip(script)).toBeUndefined())).toBeLessThan(250)
})
