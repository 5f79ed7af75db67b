"""Nets for bench/search.py beside those of tests/torch: of shapes that once took planners long, and large ones.

usage: search_nets.py FOLDER [NAME ...]      with a Python that has torch, torchvision, transformers, timm and peft

Exports each into FOLDER/NAME.json, once; NAME leaves out the others. A net that this machine's libraries
cannot build is named and left out. `slow` are small nets of many values; `large` are imports of 1,000 to 20,000 nodes, most of them
small: unrolled recurrences and deep decoders with adapters.
"""
import contextlib
import pathlib
import sys
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "torch")]
warnings.filterwarnings("ignore")


def of_timm(name, size=224, **settings):
    def build():
        import timm
        import torch
        from nets import CLASSES, ROWS, cross_entropy

        module = timm.create_model(name, num_classes=CLASSES, **settings)
        size_of = module.default_cfg["input_size"][-1] if size is None else size
        images = torch.randn(ROWS, 3, size_of, size_of)
        return module, cross_entropy, (images, torch.randint(0, CLASSES, (ROWS,)))

    return build


def of_transformers(model, config, **settings):
    def build():
        from more_nets import of_transformers as made, of_words

        return made(model, config, of_words, **settings)(False)

    return build


def both(name, **settings):
    def build():
        from more_nets import BOTH

        return of_transformers(f"{name}ForConditionalGeneration", f"{name}Config",
                               **{**BOTH, **settings})()

    return build


def causal(name, batch_length=16, **settings):
    def build():
        from more_nets import CAUSAL, WORDS, of_transformers as made
        from nets import tokens

        def batch():
            ids = tokens(batch_length, WORDS)
            return {"input_ids": ids, "labels": ids.clone()}

        return made(f"{name}ForCausalLM", f"{name}Config", batch,
                    **{**CAUSAL, "max_position_embeddings": 64, **settings})(False)

    return build


def with_adapters(build, names):
    def built():
        from peft import LoraConfig, get_peft_model

        module, loss, batch = build()
        config = LoraConfig(r=4, target_modules=names, lora_dropout=0.0)
        return get_peft_model(module, config), loss, batch

    return built


def patch_mixer():
    import torch
    import transformers

    config = transformers.PatchTSMixerConfig(context_length=32, prediction_length=8, patch_length=4, patch_stride=4,
                                             num_input_channels=3, d_model=16, num_layers=4, dropout=0,
                                             head_dropout=0)

    class Forecast(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = transformers.PatchTSMixerForPrediction(config)

        def forward(self, x):
            return self.net(past_values=x).prediction_outputs

    return Forecast(), torch.nn.functional.mse_loss, (torch.randn(4, 32, 3), torch.randn(4, 8, 3))


def small_lstm():
    from nets import lstm

    return lstm(False)


def deep(name):
    def build():
        import torch
        import torchvision
        from nets import CLASSES, ROWS, cross_entropy, without_drops

        module = without_drops(getattr(torchvision.models, name)(num_classes=CLASSES))
        return module, cross_entropy, (torch.randn(ROWS, 3, 64, 64), torch.randint(0, CLASSES, (ROWS,)))

    return build


SLOW = {
    "pegasus": both("Pegasus"),
    "m2m100": both("M2M100"),
    "blenderbot": both("Blenderbot"),
    "patchtsmixer": patch_mixer,
    "mixer": of_timm("mixer_s32_224"),
    "resmlp": of_timm("resmlp_12_224"),
    "gmlp": of_timm("gmlp_ti16_224"),
    "xcit": of_timm("xcit_nano_12_p16_224"),
    "eva02": of_timm("eva02_tiny_patch14_224"),
    "cait": of_timm("cait_xxs24_224"),
}
LARGE = {
    "llama_30": causal("Llama", num_hidden_layers=30, num_key_value_heads=2),
    "llama_30_lora": with_adapters(causal("Llama", num_hidden_layers=30, num_key_value_heads=2),
                                   ["q_proj", "k_proj", "v_proj", "o_proj", "up_proj", "down_proj", "gate_proj"]),
    "llama_80": causal("Llama", num_hidden_layers=80, num_key_value_heads=2),
    "gpt_neox_60": causal("GPTNeoX", num_hidden_layers=60),
    "rwkv_64": causal("Rwkv", 64, num_hidden_layers=6, attention_hidden_size=32, context_length=64),
    "rwkv_128": causal("Rwkv", 128, num_hidden_layers=8, attention_hidden_size=32, context_length=128),
    "mamba_64": causal("Mamba", 64, num_hidden_layers=6, state_size=4, time_step_rank=4),
    "mamba_128": causal("Mamba", 128, num_hidden_layers=12, state_size=4, time_step_rank=4),
    "resnet152": deep("resnet152"),
    "densenet201": deep("densenet201"),
}
NETS = {**SLOW, **LARGE}


def all_nets():
    """name -> build, those of tests/torch first."""
    import nets
    from more_nets import MORE

    known = {name: (lambda name=name: nets.net(name)) for name in {**nets.NETS, **MORE}}
    return {**known, **NETS}


def main():
    import torch
    from parity import thimble_torch

    folder, wanted = pathlib.Path(sys.argv[1]), sys.argv[2:]
    folder.mkdir(parents=True, exist_ok=True)
    tools = thimble_torch()
    for name, build in all_nets().items():
        file = folder / f"{name}.json"
        if file.exists() or (wanted and name not in wanted):
            continue
        torch.manual_seed(1)
        try:
            with contextlib.redirect_stdout(sys.stderr):
                module, loss, batch = build()
                module = module.train()
                trained = [p for p in module.parameters() if p.requires_grad]
                tools.export(module, loss, batch, str(file), torch.optim.SGD(trained, 0.01, momentum=0.9))
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {str(error).splitlines()[0][:200]}", flush=True)
            continue
        print(f"{name}: {file.stat().st_size} bytes", flush=True)


if __name__ == "__main__":
    main()
