"""Replaces the `show()` of libraries, which would open a window, a browser or a program."""

from . import display
from .door import called_by_script


def hook_matplotlib(module):
    """Makes `plt.show()` and `figure.show()` display and close the figures, with every backend without a window, such as `Agg`."""

    @called_by_script
    def show(self):
        figure = self.canvas.figure
        display.show_once(figure)
        from matplotlib._pylab_helpers import Gcf

        Gcf.destroy(self)

    module.FigureManagerBase.show = show


def hook_plotly(module):
    """Makes `figure.show()` display the figure. Without IPython and nbformat it would raise."""

    @called_by_script
    def show(fig, *_args, **_options):
        display.display(fig)

    module.show = show


def hook_pillow(module):
    """Makes `image.show()` display the picture instead of running a desktop program."""

    class Viewer(module.Viewer):
        @called_by_script
        def show(self, image, **_options):
            display.display(image)
            return True

    module.register(Viewer(), 0)
