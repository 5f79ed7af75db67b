// Bad input: a clear sentence, exit 2, nothing written or lost.
#include <sys/mount.h>

#include "base/error.h"
#include "checkpoint_entries.h"
#include "support/run_thimble.h"
#include "weights/safetensors.h"

namespace thimble {
namespace {

using Words = std::vector<std::string>;

// Every refusal is checked to leave the folder it ran in as it was.
class BadInput : public testing::Test {
 protected:
  template <class... Parts>
  void expect_refused(const Words& words, const Parts&... parts) {
    std::string line;
    for (const std::string& word : words) line += word + " ";
    SCOPED_TRACE(line);
    const int64_t before = folder_.entries();
    expect_mistake(thimble_says(words, {.folder = folder_.path()}), parts...);
    EXPECT_EQ(folder_.entries(), before);
  }

  // A short run that has to be refused.
  Words train(const Words& more) { return Words{"train", "mlp", "--steps", "2"} + more; }

  TemporaryFolder folder_;
};

// A mistake in a command below another is one of that command.
TEST_F(BadInput, CommandsBelowOthers) {
  expect_refused({"data"}, "say which `data`", "pairs, tokens", "`thimble data --help`");
  expect_refused({"data", "words"}, "no command 'data words'", "pairs, tokens");
  expect_refused({"data", "bpe", "lern", "x"}, "no command 'data bpe lern'", "learn, apply");
  expect_refused({"data", "tokens", "x", "--by", "words", "--out", "y"}, "words not in", "gpt2",
                 "`thimble data tokens --help`");
  expect_refused({"data", "pairs", "--ratio", "x", "--out", "y"}, "--ratio", "in range 0 to 1000");
  expect_refused({"data", "bpe", "learn", "x", "--merge", "3"}, "the nearest is --merges",
                 "`thimble data bpe learn --help`");
  expect_refused({"data", "bleu", "x", "y", "--batch", "3"}, "`thimble data bleu` has no --batch");
}

TEST_F(BadInput, Models) {
  for (const char* command : {"train", "plan", "profile"}) {
    expect_refused({command, "perceptron"}, "there is no model 'perceptron'", "wrn-D-K");
    expect_refused({command, "wrn-11-2"}, "wrn-11-2", "6n + 4");
    expect_refused({command, "wrn-28"}, "wrn-28");
    expect_refused({command, "wrn-28-0"}, "1 to 64");
    expect_refused({command, "wrn-99999999999999999999-1"}, "wrn-");
    expect_refused({command, "resnet-51"}, "resnet-51", "resnet-50");
    expect_refused({command, "resnet:[1,2,3]"}, "four stages");
    expect_refused({command, "resnet:[1,0,1,1]"}, "1 to 10000");
    expect_refused({command, "resnet:1,1,1,1"}, "resnet:[3,4,6,3]");
    expect_refused({command, ""}, "no model");
    expect_refused({command}, "model");
  }
}

TEST_F(BadInput, NormsOfOneNumber) {
  const Words net = {"plan", "resnet:[1,1,1,1]", "--image", "32,32,3", "--hidden", "8"};
  const char* const why = "would see one number a channel";
  expect_refused(net + Words{"--batch", "1"}, why, "--norm group");
  expect_refused(net + Words{"--batch", "3", "--microbatch", "2"}, why, "--microbatch");
  for (const Words& fine : {Words{"--batch", "1", "--norm", "group"}, Words{"--batch", "2"},
                            Words{"--batch", "4", "--microbatch", "2"}}) {
    EXPECT_EQ(thimble_says(net + fine, {.folder = folder_.path()}).code, 0);
  }
}

TEST_F(BadInput, Sparsity) {
  for (const char* command : {"train", "plan", "profile"}) {
    const Words base = {command, "mlp"};
    for (const char* density : {"0", "-0.5", "1.5", "nan", "inf"}) {
      expect_refused(base + Words{"--density", density}, "--density", "1 at most");
    }
    expect_refused(base + Words{"--density", "half"}, "--density");
    expect_refused(base + Words{"--sparsity", "static"}, "--sparsity", "--density");
    expect_refused(base + Words{"--sparse", "*"}, "--sparse", "--density");
    expect_refused(base + Words{"--density", "0.5", "--sparsity", "block"}, "'block'", "magnitude");
    expect_refused(base + Words{"--density", "0.5", "--sparse", "conv*"}, "'conv*'",
                   "hidden1.weight");
    expect_refused(base + Words{"--density", "0.5", "--sparse", "*.bias"}, "the matrix of a layer");
    expect_refused(base + Words{"--density", "0.5", "--prune-target", "0"}, "above 0, not 0");
    expect_refused(base + Words{"--density", "0.5", "--prune-threshold", "-1"}, "above 0, not -1");
    expect_refused(base + Words{"--density", "0.5", "--allow", "equivalent"}, "approximate",
                   "leave --density out");
  }
  expect_refused(train({"--reallocate-every", "5"}), "--reallocate-every", "--density");
  expect_refused(train({"--density", "0.5", "--reallocate-every", "-5"}), "--reallocate-every",
                 "not -5");
}

TEST_F(BadInput, Microbatches) {
  for (const char* command : {"train", "plan", "profile"}) {
    const Words base = {command, "mlp", "--batch", "20"};
    expect_refused(base + Words{"--microbatch", "0"}, "--microbatch", "from 1 on");
    expect_refused(base + Words{"--microbatch", "-3"}, "--microbatch", "from 1 on");
    expect_refused(base + Words{"--microbatch", "2.5"}, "--microbatch");
    expect_refused(base + Words{"--microbatch", "21"}, "a microbatch of 21 rows", "batch of 20");
    // The model's usual batch counts, too.
    expect_refused({command, "mlp", "--microbatch", "101"}, "batch of 100");
    for (const char* optimizer : {"nesterov", "adam", "adamw"}) {
      expect_refused(base + Words{"--fold", "--optimizer", optimizer}, optimizer,
                     "choose --optimizer sgd");
    }
    expect_refused(base + Words{"--fold", "--optimizer", "sgd", "--momentum", "0"}, "--momentum");
    expect_refused(base + Words{"--microbatch", "10", "--allow", "exact"}, "equivalent",
                   "leave --microbatch out");
    expect_refused(base + Words{"--fold", "--optimizer", "sgd", "--allow", "exact"}, "equivalent",
                   "leave --fold out");
    expect_refused(base + Words{"--fold", "--optimizer", "sgd", "--precision", "fp16"},
                   "cannot be skipped", "--loss-scale that is a number", "--precision bf16");
    expect_refused(base + Words{"--precision", "fp8"}, "fp32, fp16, bf16");
    expect_refused(base + Words{"--density", "0.5", "--allow", "equivalent"}, "approximate",
                   "leave --density out");
    expect_refused(base + Words{"--precision", "bf16", "--allow", "equivalent"}, "approximate",
                   "--precision fp32");
    expect_refused(base + Words{"--master"}, "leave --master out");
    expect_refused(base + Words{"--rounding", "kahan"}, "--precision fp16 or bf16");
    expect_refused(base + Words{"--precision", "bf16", "--master", "--rounding", "stochastic"},
                   "without --master");
    expect_refused(base + Words{"--precision", "fp16", "--rounding", "up"}, "nearest, stochastic");
    expect_refused(base + Words{"--precision", "fp16", "--loss-scale", "much"}, "dynamic, none");
    expect_refused(base + Words{"--precision", "fp16", "--loss-scale-backoff", "2"},
                   "between 0 and 1");
    expect_refused(base + Words{"--allow", "anything"}, "there is no tier 'anything'",
                   "equivalent");
    expect_refused(base + Words{"--norm", "group"}, "mlp has no --norm", "wrn");
    expect_refused({command, "wrn-10-1", "--norm", "layer"}, "there is no normalisation 'layer'",
                   "group");
    expect_refused({command, "wrn-10-1", "--microbatch", "10", "--allow", "equivalent"},
                   "approximate", "--norm group");
  }
}

TEST_F(BadInput, FlagsAndCommands) {
  const Outcome nothing = thimble_says({});
  EXPECT_EQ(nothing.code, 2);
  EXPECT_NE(nothing.err.find("Usage: thimble"), std::string::npos);
  expect_refused({"tarin", "mlp"});
  expect_refused(train({"--frobnicate"}), "--frobnicate");
  expect_refused({"plan", "mlp", "--frobnicate", "3"}, "--frobnicate");
  expect_refused({"plan", "mlp", "wrn-10-1"}, "wrn-10-1");
  expect_refused({"plan", "mlp", "--hidden", "many"}, "--hidden");
  expect_refused({"plan", "mlp", "--layers", "-1"}, "--layers", "-1");
  expect_refused({"plan", "mlp", "--dropout", "1"}, "dropout", "1");
  expect_refused({"plan", "mlp", "--dropout", "-0.1"}, "dropout");
  expect_refused({"plan", "mlp", "--dropout", "nan"}, "dropout");
  expect_refused({"plan", "mlp", "--label-smoothing", "1.5"}, "--label-smoothing");
  expect_refused({"plan", "mlp", "--classes", "1"}, "--classes", "from 2 on");
  expect_refused({"plan", "mlp", "--image", "8,8"}, "--image");
  expect_refused({"plan", "mlp", "--image", "8,0,1"}, "--image");
  expect_refused({"plan", "mlp", "--momentum", "1"}, "--momentum");
  expect_refused({"plan", "mlp", "--momentum", "nan"}, "--momentum");
  expect_refused({"plan", "mlp", "--weight-decay", "-5"}, "--weight-decay");
  expect_refused({"plan", "mlp", "--layers", "1000000000"}, "--layers");
  expect_refused(train({"--lr", "nan"}), "--lr");
  expect_refused({"plan", "mlp", "--optimizer", "sgdd"}, "'sgdd'", "adamw");
  expect_refused({"plan", "mlp", "--planner", "magic"}, "'magic'", "keep_all");
  expect_refused({"plan", "mlp", "--device", "gpu"}, "gpu");
  expect_refused({"plan", "mlp", "--threads", "-1"}, "--threads");
  expect_refused(train({"--schedule", "linear"}), "'linear'", "cosine");
  expect_refused(train({"--lr", "-1"}), "--lr");
  expect_refused(train({"--epochs", "0"}), "--epochs");
  expect_refused(train({"--epochs", "nan"}), "--epochs");
  expect_refused({"train", "mlp", "--steps", "-4"}, "--steps");
  expect_refused(train({"--save-every", "-1"}), "--save-every");
  expect_refused(train({"--eval-every", "nan"}), "--eval-every");
  expect_refused(train({"--milestones", "3,-1"}), "--milestones");
  expect_refused(train({"--device", "null"}), "null");
}

TEST_F(BadInput, Budgets) {
  for (const char* budget : {"12furlongs", "0", "-5", "-5MiB", "0.0001", "MiB", "1e400", "nan",
                             "12 fur longs", "99999999999999999999"}) {
    const std::string flag = fmt::format("--memory={}", budget);
    expect_refused({"plan", "mlp", flag}, "is not a size", budget, "64MiB");
    expect_refused(train({flag}), "is not a size");
  }
}

// Whether or not the build knows GPUs; with one, there is nothing to refuse.
TEST_F(BadInput, NoGpu) {
  const Outcome outcome = thimble_says({"plan", "mlp", "--device", "cuda"});
  if (outcome.code == 0) return;
  expect_mistake(outcome, "CUDA", "--device null");
}

TEST_F(BadInput, Batches) {
  for (const char* batch : {"0", "-1", "-9223372036854775808"}) {
    for (const char* command : {"train", "plan", "profile"}) {
      expect_refused({command, "mlp", "--batch", batch}, "--batch", batch);
    }
  }
  for (const char* batch : {"", "ten", "1.5"}) {
    expect_refused({"plan", "mlp", "--batch", batch}, "--batch");
  }
  for (const char* steps : {"0", "-4", "many"}) {
    expect_refused({"plan", "lstm", "--steps-at-once", steps}, "--steps-at-once");
  }
  expect_refused(train({"--batch", "1798"}), "1798", "training records");
  expect_refused({"profile", "mlp", "--batch", "1798"}, "1798", "training records");
  expect_refused({"train", "lstm", "--batch", "6401", "--length", "2", "--hidden", "2"}, "6401",
                 "training records");
}

TEST_F(BadInput, NumbersBeyondAnyMemory) {
  const char* const kSays = "at most";
  expect_refused({"plan", "mlp", "--batch", "9223372036854775807"}, "--batch", kSays);
  expect_refused({"plan", "mlp", "--batch", "99999999999999999999"}, "--batch", kSays);
  expect_refused({"plan", "mlp", "--hidden", "4000000000000"}, "--hidden", kSays);
  expect_refused({"plan", "wrn-10-1", "--image", "4000000000,4000000000,3"}, "--image", kSays);
  expect_refused({"plan", "wrn-10-1", "--image", "2000000000,2000000000,3"}, "beyond any memory");
  expect_refused({"plan", "lstm", "--layers", "10000", "--length", "100000"}, "more than",
                 "tensors");
  expect_refused({"plan", "lstm", "--hidden", "4000000000000", "--length", "1"});
}

TEST_F(BadInput, SizesBeyondTheKernelsIntegers) {
  const char* const kSays = "the CPU's kernels count to 1073741824";
  expect_refused({"plan", "mlp", "--classes", "2147483647"}, "--classes", "16777216 at most");
  expect_refused({"plan", "mlp", "--image", "2147483647,1,1"}, kSays, "--image");
  expect_refused({"plan", "mlp", "--image", "65536,65536,1"}, kSays);
  expect_refused({"plan", "mlp", "--batch", "4294967296"}, "--batch", "at most");
  expect_refused({"plan", "wrn-10-1", "--batch", "1", "--image", "65536,65536,3"}, kSays);
  expect_refused({"plan", "lstm", "--length", "2", "--batch", "4294967296"});
}

TEST_F(BadInput, StepsBeyondThePlanner) {
  expect_refused({"plan", "lstm", "--layers", "10000", "--length", "100000"}, "more than 1048576",
                 "--length", "--steps-at-once");
  expect_refused({"plan", "resnet:[1000,1,1,1]", "--recompute", "*#*", "--device", "null"}, "calls",
                 "--keep");
}

TEST_F(BadInput, DataSets) {
  expect_refused(train({"--data", "imagenet"}), "'imagenet' is not a data set", "cifar10");
  expect_refused(train({"--data", "cifar10"}), "needs a folder");
  expect_refused(train({"--data", "cifar10", "--data-dir", folder_ / "none"}), folder_ / "none");
  expect_refused({"train", "lstm", "--data", "digits"}, "there is no 'sequence'", "--data");
  expect_refused({"train", "lstm", "--data", "adding"}, "--reads sequence --predicts number");
  expect_refused({"train", "lstm", "--data", "copy"}, "--reads tokens --predicts targets");
  expect_refused({"plan", "mlp", "--data", "imagenet"}, "imagenet");
}

TEST_F(BadInput, CifarFiles) {
  const TemporaryFolder data;
  constexpr size_t kRecord = 3073;
  const auto records = [](size_t count) { return std::string(count * kRecord, '\1'); };
  const auto write_all_batches = [&] {
    for (int i = 1; i <= 5; ++i) spill(data / fmt::format("data_batch_{}.bin", i), records(4));
    spill(data / "test_batch.bin", records(3));
  };
  const Words words =
      train({"--data", "cifar10", "--data-dir", data.path(), "--batch", "4", "--out", "run"});
  expect_refused(words, "data_batch_1.bin");
  write_all_batches();
  spill(data / "data_batch_3.bin", records(4).substr(1));
  expect_refused(words, "data_batch_3.bin", "truncated or oversized");
  spill(data / "data_batch_3.bin", records(4) + "x");
  expect_refused(words, "data_batch_3.bin", "truncated or oversized");
  spill(data / "data_batch_3.bin", "");
  expect_refused(words, "data_batch_3.bin");
  std::string wrong_label = records(4);
  wrong_label[2 * kRecord] = 10;
  spill(data / "data_batch_3.bin", wrong_label);
  expect_refused(words, "data_batch_3.bin", "label 10", "record 2");
  write_all_batches();
  std::filesystem::remove(data / "test_batch.bin");
  expect_refused(words, "test_batch.bin");
  write_all_batches();
  expect_refused(train({"--data", "cifar10", "--data-dir", data.path(), "--batch", "21"}), "21",
                 "20 training records");
  EXPECT_EQ(thimble_says(words, {.folder = folder_.path()}).code, 0);  // sound, it trains
}

TEST_F(BadInput, IdxFiles) {
  const TemporaryFolder data;
  const auto header = [](std::initializer_list<uint32_t> words) {
    std::string bytes;
    for (const uint32_t word : words) {
      for (int shift = 24; shift >= 0; shift -= 8)
        bytes.push_back(static_cast<char>(word >> shift));
    }
    return bytes;
  };
  const std::string images = header({0x803, 6, 8, 8}) + std::string(6 * 64, '\5');
  const std::string labels = header({0x801, 6}) + std::string(6, '\3');
  const auto write_set = [&] {
    for (const char* split : {"train", "t10k"}) {
      spill(data / fmt::format("{}-images-idx3-ubyte", split), images);
      spill(data / fmt::format("{}-labels-idx1-ubyte", split), labels);
    }
  };
  const Words words =
      train({"--data", "mnist", "--data-dir", data.path(), "--batch", "4", "--out", "run"});
  expect_refused(words, "train-images");
  write_set();
  const std::string train_images = data / "train-images-idx3-ubyte";
  const std::string train_labels = data / "train-labels-idx1-ubyte";
  spill(train_images, images.substr(0, images.size() - 1));
  expect_refused(words, train_images, "truncated");
  spill(train_images, images + "x");
  expect_refused(words, train_images, "oversized");
  spill(train_images, images.substr(0, 9));
  expect_refused(words, train_images, "truncated");
  spill(train_images, header({0x801, 100}) + std::string(100, '\1'));
  expect_refused(words, train_images, "not an IDX file of images");
  spill(train_images, header({0x803, 0xffffffff, 0xffffffff, 0xffffffff}));
  expect_refused(words, train_images);
  spill(train_images, header({0x803, 7, 8, 8}) + std::string(7 * 64, '\5'));
  expect_refused(words, "7 images", "6 labels");
  write_set();
  spill(train_labels, header({0x801, 6}) + std::string("\1\2\3\4\5\12", 6));
  expect_refused(words, train_labels, "label 10", "record 5");
  spill(train_labels + ".gz", "not gzip");
  std::filesystem::remove(train_labels);
  expect_refused(words, train_labels + ".gz");
  std::filesystem::remove(train_labels + ".gz");
  write_set();
  EXPECT_EQ(thimble_says(words, {.folder = folder_.path()}).code, 0);
}

TEST_F(BadInput, OutputFolders) {
  spill(folder_ / "file", "precious");
  expect_refused(train({"--out", folder_ / "file"}), folder_ / "file");
  expect_refused(train({"--out", folder_ / "file/below"}), folder_ / "file");
  expect_refused(train({"--out", "/proc/thimble"}), "/proc/thimble");
  EXPECT_EQ(slurp(folder_ / "file"), "precious");
  if (geteuid() == 0) return;  // to root every folder is writable
  std::filesystem::create_directory(folder_ / "locked");
  std::filesystem::permissions(
      folder_ / "locked", std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  expect_refused(train({"--out", folder_ / "locked"}), folder_ / "locked");
  expect_refused(train({"--out", folder_ / "locked/run"}), folder_ / "locked");
}

TEST_F(BadInput, ACheckpointInTheWayIsNotOverwritten) {
  const Words words = {"train", "mlp", "--steps", "2", "--out", folder_ / "run", "--no-eval"};
  ASSERT_EQ(thimble_says(words).code, 0);
  const std::string before = slurp(folder_ / "run/latest/weights.safetensors");
  expect_refused(words + Words{"--seed", "2"}, "already holds a checkpoint", "--resume",
                 "--overwrite");
  EXPECT_EQ(slurp(folder_ / "run/latest/weights.safetensors"), before);
  EXPECT_EQ(thimble_says(words + Words{"--seed", "2", "--overwrite"}).code, 0);
  EXPECT_NE(slurp(folder_ / "run/latest/weights.safetensors"), before);
}

TEST_F(BadInput, ResumingWhereThereIsNothing) {
  expect_refused({"train", "mlp", "--resume", "--steps", "2", "--out", folder_ / "run"},
                 "no checkpoint");
}

TEST_F(BadInput, ResumingAnotherRun) {
  const std::string out = folder_ / "run";
  const Words base = {"train", "--out", out, "--steps", "2", "--no-eval"};
  ASSERT_EQ(thimble_says(base + Words{"mlp"}).code, 0);
  const std::string before = slurp(out + "/latest/state.json");
  expect_refused(base + Words{"wrn-10-1", "--batch", "8", "--resume"}, "model", "mlp", "wrn-10-1");
  expect_refused(base + Words{"mlp", "--batch", "50", "--resume"}, "batch", "100", "50");
  expect_refused(base + Words{"mlp", "--hidden", "8", "--resume"}, "hidden");
  expect_refused(base + Words{"mlp", "--seed", "9", "--resume"}, "seed");
  expect_refused(base + Words{"mlp", "--optimizer", "adam", "--lr", "0.1", "--resume"},
                 "optimizer");
  expect_refused(base + Words{"mlp", "--lr", "0.2", "--resume"}, "lr");
  expect_refused(base + Words{"mlp", "--schedule", "constant", "--resume"}, "schedule");
  expect_refused(base + Words{"mlp", "--augment", "--resume"}, "augment");
  expect_refused({"train", "mlp", "--out", out, "--steps", "1", "--resume"}, "beyond");
  EXPECT_EQ(slurp(out + "/latest/state.json"), before);
  // Damaged on disk.
  const std::string weights = slurp(out + "/latest/weights.safetensors");
  std::string flipped = weights;
  flipped[flipped.size() / 2] = static_cast<char>(flipped[flipped.size() / 2] ^ 4);
  spill(out + "/latest/weights.safetensors", flipped);
  expect_refused({"train", "mlp", "--out", out, "--steps", "4", "--resume"}, "damaged",
                 "weights.safetensors");
  spill(out + "/latest/weights.safetensors", weights);
  spill(out + "/latest/state.json", before.substr(0, before.size() / 2));
  expect_refused({"train", "mlp", "--out", out, "--steps", "4", "--resume"}, "state.json");
  spill(out + "/latest/state.json", before);
  EXPECT_EQ(thimble_says({"train", "mlp", "--out", out, "--steps", "4", "--resume"}).code, 0);
}

TEST_F(BadInput, HostileSafetensors) {
  const std::string path = folder_ / "w.safetensors";
  const auto length = [](uint64_t value) {
    std::string bytes;
    for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
    return bytes;
  };
  const auto file = [&](std::string_view header, std::string_view data = "") {
    return length(header.size()) + std::string(header) + std::string(data);
  };
  const std::string files[] = {
      "",
      "abc",
      length(1ull << 62) + "{}",
      length(~0ull) + "{}",
      length(1000) + "{}",
      length(0),
      file("not json at all"),
      file("[]"),
      file(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,800]}})", "12345678"),
      file(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[-8,0]}})", "12345678"),
      file(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
           R"("b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})",
           "123456"),
      file(R"({"a":{"dtype":"F32","shape":[9223372036854775807,9],"data_offsets":[0,4]}})", "1234"),
      file(R"({"a":{"dtype":"F99","shape":[1],"data_offsets":[0,4]}})", "1234"),
      file(std::string(100000, '[')),
      file(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "1234"),
  };
  for (const std::string& content : files) {
    spill(path, content);
    expect_refused(train({"--weights", path, "--out", folder_ / "run"}), path);
  }
  expect_refused(train({"--weights", folder_ / "none"}), folder_ / "none");
  expect_refused(train({"--weights", folder_.path()}), folder_.path());
  // Another model's.
  ASSERT_EQ(thimble_says({"train", "mlp", "--hidden", "8", "--steps", "1", "--no-eval", "--out",
                          folder_ / "other", "--export-initial", folder_ / "other.safetensors"})
                .code,
            0);
  expect_refused(train({"--weights", folder_ / "other.safetensors"}), "another model");
}

TEST_F(BadInput, ALossThatIsNotFinite) {
  const std::string out = folder_ / "run";
  const Outcome outcome = thimble_says({"train", "mlp", "--steps", "30", "--lr", "1e30", "--out",
                                        out, "--save-every", "0.08", "--json"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("not finite at step 2"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("'"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find(out), std::string::npos) << outcome.err;  // the last good checkpoint
  EXPECT_TRUE(std::filesystem::exists(out + "/latest/state.json"));
}

TEST_F(BadInput, ADiskThatFillsUp) {
  const std::string out = folder_ / "run";
  const Words words = {"train", "mlp", "--no-eval", "--schedule", "constant", "--out", out};
  ASSERT_EQ(thimble_says(words + Words{"--steps", "3"}).code, 0);
  const Words further = words + Words{"--steps", "6", "--resume", "--json"};
  // 64 KiB for a file: the state fits, the weights do not.
  const Outcome full = thimble_says(further, {.file_limit = 65536});
  expect_mistake(full, out);
  EXPECT_EQ(std::filesystem::read_symlink(out + "/latest"), "step-00000003");
  EXPECT_EQ(checkpoint_entries(out), 2);
  const Outcome resumed = thimble_says(further);
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(resumed.json()["resumed_at"], 3);
  const Outcome whole = thimble_says({"train", "mlp", "--no-eval", "--schedule", "constant",
                                      "--out", folder_ / "whole", "--steps", "6", "--json"});
  EXPECT_EQ(resumed.json()["weights_sha256"], whole.json()["weights_sha256"]);
}

TEST_F(BadInput, AReallyFullDisk) {
  const TemporaryFolder disk;
  if (geteuid() != 0 || mount("tmpfs", disk.path().c_str(), "tmpfs", 0, "size=1500k") != 0) {
    GTEST_SKIP() << "cannot make a small disk here";
  }
  // A checkpoint of this net takes about 700 KB: the second finds no room beside the first.
  const Words words = {"train",    "mlp",   "--no-eval",  "--schedule",
                       "constant", "--out", disk / "run", "--json"};
  const Outcome first = thimble_says(words + Words{"--steps", "3"});
  spill(disk / "ballast", std::string(400000, 'x'));
  const Outcome second = thimble_says(words + Words{"--steps", "6", "--resume"});
  const bool kept = std::filesystem::exists(disk / "run/latest/state.json");
  const int64_t entries = checkpoint_entries(disk / "run");
  std::filesystem::remove(disk / "ballast");
  const Outcome third = thimble_says(words + Words{"--steps", "6", "--resume"});
  umount(disk.path().c_str());
  EXPECT_EQ(first.code, 0) << first.err;
  expect_mistake(second, disk / "run", "space");
  EXPECT_TRUE(kept);
  EXPECT_EQ(entries, 2);
  EXPECT_EQ(third.code, 0) << third.err;
}

TEST_F(BadInput, Recipes) {
  const std::string path = folder_ / "r.toml";
  expect_refused({"train", folder_ / "none.toml"}, folder_ / "none.toml");
  const auto refused = [&](std::string_view text, const auto&... parts) {
    spill(path, text);
    expect_refused({"plan", path}, parts...);
  };
  refused("model = ", path, "line 1");
  refused("batch = 3\n", "names no model");
  refused("model = \"mlp\"\nfrobnicate = 3\n", "--frobnicate");
  refused("model = \"mlp\"\nbatch = 0\n", "--batch");
  refused("model = \"mlp\"\nbatch = \"many\"\n", "--batch");
  refused("model = \"mlp\"\n[table]\nbatch = 3\n", "table");
  refused("model = \"mlp\"\nbatch = 1979-05-27\n", "batch");
  refused("model = \"none.toml\"\n", "none.toml");
  refused("model = \"mlp\"\nbacth = 3\n", path, "--bacth", "the nearest is --batch");
  refused("model = \"wrn-10-1\"\nhidden = 3\n", path, "wrn-10-1 has no --hidden", "mlp");
  refused("model = \"mlp\"\nbatch = 1e2\n", path, "--batch", "a whole number");
}

TEST_F(BadInput, AMisspeltFlag) {
  expect_refused({"plan", "mlp", "--bacth", "3"}, "there is no --bacth; the nearest is --batch");
  expect_refused({"plan", "--bacth=3", "mlp"}, "there is no --bacth; the nearest is --batch");
  expect_refused({"train", "mlp", "--overwirte"}, "the nearest is --overwrite");
  expect_refused({"plan", "mlp", "-memory", "3"}, "there is no -memory; write --memory");
  expect_refused({"list", "--jsno"}, "there is no --jsno; the nearest is --json");
  expect_refused({"plan", "mlp", "--epochs", "3"}, "`thimble plan` has no --epochs",
                 "`thimble train` has it");
}

TEST_F(BadInput, AFlagOfAnotherProgram) {
  expect_refused({"plan", "mlp", "--gradient-accumulation", "4"},
                 "there is no --gradient-accumulation; gradient accumulation is --microbatch N",
                 "thimble plan --help");
  expect_refused({"train", "mlp", "--learning-rate=0.1"},
                 "there is no --learning-rate; its name here is --lr");
  expect_refused({"train", "mlp", "--activation-checkpointing"}, "--memory BYTES");
  expect_refused({"plan", "mlp", "--num-epochs", "3"}, "its name here is --epochs",
                 "`thimble train`");
  expect_refused({"plan", "mlp", "--fsdp"}, "--shard state, gradients or weights");
  spill(folder_ / "r.toml", "model = \"mlp\"\nmicro_batch = 3\n");
  expect_refused({"plan", folder_ / "r.toml"}, "gradient accumulation is --microbatch N");
}

// A setting that is typed has an effect, or is refused.
TEST_F(BadInput, WhatCannotHaveAnEffect) {
  const char* const kSays = "says nothing";
  expect_refused(train({"--data", "digits", "--image", "16,16,1"}), "--image", kSays, "digits");
  expect_refused(train({"--classes", "4"}), "--classes", kSays, "digits");
  expect_refused({"plan", "lstm", "--image", "8,8,1"}, "--image", kSays, "no images");
  expect_refused({"plan", "wrn-10-1", "--hidden", "8"}, "wrn-10-1 has no --hidden", "resnet");
  expect_refused({"plan", "mlp", "--optimizer", "adam", "--momentum", "0.9"}, "--momentum", kSays,
                 "adam");
  expect_refused({"plan", "mlp", "--beta1", "0.8"}, "--beta1", kSays, "nesterov");
  expect_refused(train({"--milestones", "1"}), "--milestones", kSays, "--schedule step");
  expect_refused(train({"--factor", "0.2"}), "--factor", kSays, "--schedule step");
  expect_refused(train({"--warmup-start", "0.2"}), "--warmup-start", kSays, "--warmup");
  expect_refused(train({"--crop-pad", "2"}), "--crop-pad", kSays, "--augment");
  expect_refused(train({"--sequences", "20"}), "--sequences", kSays, "'digits'");
  expect_refused({"train", "wrn-10-1", "--data", "generated", "--sequences", "20"}, "--sequences",
                 kSays, "'generated'");
  expect_refused({"plan", "lstm", "--augment"}, "--augment", "`thimble train` has it");
  expect_refused(train({"--no-eval", "--eval-every", "2"}), "--eval-every", kSays, "--no-eval");
  expect_refused(train({"--loss-scale-floor", "1"}), "--loss-scale-floor", kSays);
  expect_refused(train({"--losses"}), "--losses", kSays, "--json");
  expect_refused(train({"--times"}), "--times", kSays, "--json");
}

TEST_F(BadInput, EmptyAndMisreadNumbers) {
  expect_refused({"plan", "mlp", "--memory", ""}, "--memory", "is not a size");
  expect_refused({"train", "mlp", "--steps", ""}, "--steps");
  expect_refused({"train", "mlp", "--steps", "0"}, "--steps", "from 1 on");
  expect_refused({"plan", "mlp", "--density", ""}, "--density");
  expect_refused({"plan", "mlp", "--batch", "010"}, "--batch", "'010'");
  expect_refused({"plan", "mlp", "--seed", "-1"}, "--seed", "from 0 on");
  expect_refused({"train", "mlp", "--epochs", "1e7"}, "--epochs", "1000000 at most");
  expect_refused({"plan", "mlp", "--clip-norm", "1e-320"}, "--clip-norm");
}

}  // namespace
}  // namespace thimble
