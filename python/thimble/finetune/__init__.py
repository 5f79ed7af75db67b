"""Fine-tuning: from a Hugging Face folder and a JSONL file to adapters and answers."""

from .run import FineTuned, finetune

__all__ = ["FineTuned", "finetune"]
