"""Replaces `show()` of libraries, which would open a window, a browser or a program."""

from . import display
from .door import called_by_script


def hook_matplotlib(module):
    """`plt.show()` and `figure.show()` show and close the figures, with every backend that has no window: `use('Agg')`, too."""

    @called_by_script
    def show(self):
        figure = self.canvas.figure
        display.show_once(figure)
        from matplotlib._pylab_helpers import Gcf

        Gcf.destroy(self)

    module.FigureManagerBase.show = show


def hook_plotly(module):
    """`figure.show()` shows the figure. (Without IPython and nbformat it would raise.)"""

    @called_by_script
    def show(fig, *_args, **_options):
        display.display(fig)

    module.show = show


def hook_pillow(module):
    """`image.show()` shows the picture. (It would run a program of the desktop.)"""

    class Viewer(module.Viewer):
        @called_by_script
        def show(self, image, **_options):
            display.display(image)
            return True

    module.register(Viewer(), 0)
