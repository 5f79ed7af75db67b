// Cases of the CPU kernels that the conformance samples are too small to show: shapes of real models
// on every thread, channel counts that no vector fits, data far from zero, sums into what is there.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/sixteen_bit.h"
#include "base/number/philox.h"
#include "graph/coded_weight.h"
#include "support/op_harness.h"

namespace thimble {
namespace {

struct Case {
  std::string op;
  Sample sample;
};

TensorType f32(Shape shape) { return {shape}; }

// The same case with 16-bit numbers, wherever the op takes them.
Case in_sixteen_bits(Case c, DType dtype) {
  c.sample.inputs = switched_types(*find_op(c.op), c.sample, dtype);
  return c;
}

Case conv(std::string op, Shape x, Shape w, int64_t stride, uint32_t accumulate = 0) {
  const int64_t pad = w[1] / 2;
  const Shape y = {x[0], (x[1] + 2 * pad - w[1]) / stride + 1, (x[2] + 2 * pad - w[2]) / stride + 1,
                   w[0]};
  Attrs attrs = {{"stride", stride}, {"pad", pad}};
  std::vector<TensorType> inputs = {f32(x), f32(w)};
  if (op == "conv2d_backward_data") {
    inputs = {f32(w), f32(y)};
    attrs.set("in_h", x[1]).set("in_w", x[2]);
  } else if (op == "conv2d_backward_weights") {
    inputs = {f32(x), f32(y)};
    attrs.set("kernel_h", w[1]).set("kernel_w", w[2]);
  }
  return {std::move(op), {.inputs = inputs, .attrs = attrs, .accumulate = accumulate}};
}

Case batch_norm(std::string op, Shape x, double mean, uint32_t accumulate = 0) {
  const Fill data = {Fill::Kind::normal, mean, mean};
  if (op == "batch_norm_stats") return {op, {.inputs = {f32(x)}, .fills = {data}}};
  const TensorType channels = f32({x.back()});
  Sample sample{.inputs = {f32(x), channels, channels, channels, channels},
                .attrs = {{"act", std::string("relu")}},
                .fills = {data, data, {Fill::Kind::uniform, 0.5, 2}},
                .accumulate = accumulate};
  if (op == "batch_norm_backward") sample.inputs.push_back(f32(x));
  return {std::move(op), sample};
}

// Attention of several tiles, the last of them in part.
void add_attention(std::vector<Case>& result) {
  const Fill keys = {Fill::Kind::labels, 0, 1000};
  const Fill small = {Fill::Kind::uniform, -1, 1};
  const TensorType rng = {{3}, DType::i64}, lengths = {{2}, DType::i32};
  const Attrs packed = {{"heads", int64_t{3}},
                        {"causal", int64_t{1}},
                        {"packed", int64_t{1}},
                        {"dropout", 0.1},
                        {"stream", int64_t{4}}};
  const Attrs across = {{"heads", int64_t{4}}, {"groups", int64_t{2}}, {"padded", int64_t{1}}};
  const TensorType qkv = f32({2, 150, 3 * 3 * 20}), y = f32({2, 150, 60}), lse = f32({2, 3, 150});
  const TensorType q = f32({2, 70, 128}), k = f32({2, 200, 64}), seen = f32({2, 4, 70});
  const Fill above = {Fill::Kind::uniform, 4, 6}, some = {Fill::Kind::labels, 1, 201};
  std::vector<Case> cases = {
      {"attention", {.inputs = {qkv, rng}, .attrs = packed, .fills = {{}, keys}}},
      {"attention", {.inputs = {q, k, k, lengths}, .attrs = across, .fills = {{}, {}, {}, some}}},
      {"attention_backward",
       {.inputs = {qkv, y, lse, y, rng}, .attrs = packed, .fills = {small, {}, above, {}, keys}}},
      {"attention_backward",
       {.inputs = {q, k, k, q, seen, q, lengths},
        .attrs = across,
        .fills = {small, small, small, {}, above, {}, some}}}};
  // Few heads, whose keys are shared by threads.
  const Attrs grouped = {{"heads", int64_t{4}}, {"groups", int64_t{2}}, {"causal", int64_t{1}}};
  const TensorType all = f32({1, 290, 256}), of_groups = f32({1, 290, 128}),
                   sums = f32({1, 4, 290});
  cases.push_back({"attention", {.inputs = {all, of_groups, of_groups}, .attrs = grouped}});
  cases.push_back({"attention_backward",
                   {.inputs = {all, of_groups, of_groups, all, sums, all},
                    .attrs = grouped,
                    .fills = {small, small, small, {}, above, {}}}});
  const TensorType one = f32({1, 260, 3 * 3 * 20}), y1 = f32({1, 260, 60}), lse1 = f32({1, 3, 260});
  cases.push_back({"attention_backward",
                   {.inputs = {one, y1, lse1, y1, rng},
                    .attrs = packed,
                    .fills = {small, {}, above, {}, keys}}});
  const TensorType few = f32({1, 70, 128}), many = f32({1, 300, 64}), seen1 = f32({1, 4, 70});
  cases.push_back({"attention_backward",
                   {.inputs = {few, many, many, few, seen1, few, {{1}, DType::i32}},
                    .attrs = across,
                    .fills = {small, small, small, {}, above, {}, {Fill::Kind::labels, 1, 60}}}});
  for (const Case& c : cases) {
    result.push_back(c);
    result.push_back(in_sixteen_bits(c, DType::bf16));
  }
}

// Products with matrices in few bits, in several slabs or groups of panels, the last of them in part.
void add_coded(std::vector<Case>& result) {
  for (const CodedFormat format : {CodedFormat::nf4, CodedFormat::int8}) {
    const CodedMatrix matrix = {format, 330, 200};
    for (const int64_t turned : {1, 0}) {
      Sample sample = {.inputs = {f32({3, 37, turned != 0 ? 200 : 330})},
                       .attrs = attrs_of(matrix),
                       .fills = {{}}};
      sample.attrs.set("transpose", turned);
      for (const TensorType& type : matrix.types()) {
        sample.inputs.push_back(type);
        sample.fills.push_back(type.dtype == DType::u8 ? Fill{Fill::Kind::bytes}
                                                       : Fill{Fill::Kind::uniform, 0.5, 1});
      }
      for (const uint32_t accumulate : {0u, 1u}) {
        sample.accumulate = accumulate;
        const Case c = {"coded_matmul", sample};
        result.push_back(c);
        Case narrow = c;
        narrow.sample.inputs[0].dtype = DType::bf16;
        result.push_back(narrow);
      }
    }
  }
}

// The other kernels of a block of a language model, in 16 bits.
void add_blocks(std::vector<Case>& result) {
  const TensorType x = f32({3, 40, 96}), channels = f32({96}), rows = f32({120});
  const TensorType turns = f32({40, 16});
  const Fill positive = {Fill::Kind::uniform, 0.5, 2};
  const std::string tanh = "tanh", silu = "silu";
  const std::vector<Case> cases = {
      {"gelu", {.inputs = {x}, .attrs = {{"approximate", tanh}}}},
      {"gelu_backward", {.inputs = {x, x}, .accumulate = 1}},
      {"silu", {.inputs = {x}}},
      {"glu", {.inputs = {x}, .attrs = {{"act", silu}}}},
      {"glu_backward", {.inputs = {x, f32({3, 40, 48})}, .attrs = {{"act", silu}}}},
      {"rotary", {.inputs = {x}, .attrs = {{"heads", int64_t{6}}, {"rotated", int64_t{4}}}}},
      {"rotary",
       {.inputs = {x, turns, turns}, .attrs = {{"heads", int64_t{6}}, {"inverse", int64_t{1}}}}},
      {"gated", {.inputs = {x, x}, .attrs = {{"act", silu}}}},
      {"gated_backward", {.inputs = {x, x, x}, .attrs = {{"act", silu}}, .accumulate = 2}},
      {"rms_norm", {.inputs = {x, channels}}},
      {"rms_norm_backward",
       {.inputs = {x, rows, channels, x}, .fills = {{}, positive}, .accumulate = 3}},
      {"layer_norm_backward",
       {.inputs = {x, rows, rows, channels, x}, .fills = {{}, {}, positive}, .accumulate = 1}}};
  for (const Case& c : cases) {
    result.push_back(c);
    result.push_back(in_sixteen_bits(c, DType::f16));
  }
}

// Products, stored in every way: of whole blocks and of what no block fits, single and in batches.
void add_products(std::vector<Case>& result) {
  const auto stored = [](std::vector<int64_t> extents, bool turned) {
    if (turned) std::swap(extents.back(), extents[extents.size() - 2]);
    return f32(Shape(extents));
  };
  const auto product = [&](const std::vector<int64_t>& a, const std::vector<int64_t>& b,
                           bool turned_a, bool turned_b, uint32_t accumulate) {
    const Case c = {
        "matmul",
        {.inputs = {stored(a, turned_a), stored(b, turned_b)},
         .attrs = {{"transpose_a", int64_t{turned_a}}, {"transpose_b", int64_t{turned_b}}},
         .accumulate = accumulate}};
    for (const DType dtype : {DType::bf16, DType::f16}) {
      result.push_back(in_sixteen_bits(c, dtype));
    }
  };
  for (const bool a : {false, true}) {
    for (const bool b : {false, true}) {
      product({130, 290}, {290, 200}, a, b, 0);
      product({37, 31}, {31, 45}, a, b, 1);
      product({5, 66, 33}, {5, 33, 70}, a, b, 0);
    }
  }
  product({3, 40, 520}, {520, 96}, false, true, 1);  // one matrix for a whole batch
  const Case added = {"matmul",
                      {.inputs = {f32({3, 200, 16}), f32({70, 16}), f32({3, 200, 70})},
                       .attrs = {{"transpose_b", int64_t{1}}}}};
  result.push_back(added);
  result.push_back(in_sixteen_bits(added, DType::bf16));
  const Case affine = {"affine", {.inputs = {f32({3, 200, 96}), f32({70, 96}), f32({70})}}};
  Case with_addend = affine;
  with_addend.sample.inputs.push_back(f32({3, 200, 70}));
  for (const Case& c : {affine, with_addend}) {
    result.push_back(c);
    result.push_back(in_sixteen_bits(c, DType::bf16));
    result.push_back(in_sixteen_bits(c, DType::f16));
  }
}

// Sentences of a translator: convolutions over time, embeddings, and what projects onto words.
void add_sequences(std::vector<Case>& result) {
  const TensorType lengths = {{7}, DType::i32}, key = {{3}, DType::i64};
  const Fill real = {Fill::Kind::labels, 0, 30}, keys = {Fill::Kind::labels, 0, 1000};
  const TensorType x = f32({7, 29, 256});
  for (const bool shared : {false, true}) {
    const std::string op = shared ? "light_conv" : "dynamic_conv";
    const TensorType kernels = f32(shared ? Shape{4, 31} : Shape{7, 29, 124});
    const Attrs attrs = {{"heads", int64_t{4}},
                         {"kernel", int64_t{31}},
                         {"padded", int64_t{1}},
                         {"dropout", 0.1},
                         {"stream", int64_t{3}}};
    result.push_back(
        {op,
         {.inputs = {x, kernels, lengths, key}, .attrs = attrs, .fills = {{}, {}, real, keys}}});
    result.push_back({op + "_backward",
                      {.inputs = {x, kernels, x, lengths, key},
                       .attrs = attrs,
                       .fills = {{}, {}, {}, real, keys},
                       .accumulate = 3}});
    for (const DType dtype : {DType::f16, DType::bf16}) {
      result.push_back(in_sixteen_bits(result[result.size() - 2], dtype));
      result.push_back(in_sixteen_bits(result[result.size() - 2], dtype));
    }
  }
  const TensorType tokens = {{40, 33}, DType::i32};
  const Fill words = {Fill::Kind::labels, 0, 1000};
  result.push_back({"embed", {.inputs = {f32({1000, 96}), tokens}, .fills = {{}, words}}});
  result.push_back({"embed_backward",
                    {.inputs = {tokens, f32({40, 33, 96})},
                     .attrs = {{"rows", int64_t{1000}}, {"scale", 9.8}},
                     .fills = {words},
                     .accumulate = 1}});
  Case loss = {
      "vocabulary_loss_backward",
      {.inputs = {f32({300, 64}), f32({1037, 64}), {{300}, DType::i32}, f32({1}), f32({1})},
       .attrs = {{"label_smoothing", 0.1}, {"takes_over", int64_t{1}}},
       .fills = {{},
                 {Fill::Kind::uniform, -0.5, 0.5},
                 {Fill::Kind::labels, -1, 1037},
                 {Fill::Kind::uniform, 0.1, 0.2},
                 {Fill::Kind::uniform, 0.5, 2}},
       .accumulate = 2}};
  result.push_back(loss);
  result.push_back(in_sixteen_bits(loss, DType::bf16));
  // Few rows, of which the gradients of all logits are kept, in several chunks.
  for (const uint32_t accumulate : {2u, 3u}) {
    loss.sample.inputs = {f32({90, 96}), f32({517, 96}), {{90}, DType::i32}, f32({1}), f32({1})};
    loss.sample.accumulate = accumulate;
    loss.sample.attrs.set("rows_at_once", int64_t{40});
    result.push_back(in_sixteen_bits(loss, DType::bf16));
    result.push_back(in_sixteen_bits(loss, DType::f16));
  }
}

// Kernels that move, repeat and add up along any axes.
void add_layouts(std::vector<Case>& result) {
  using List = std::vector<int64_t>;
  const auto over = [](List axes, const char* kind) {
    return Attrs{{"axes", std::move(axes)}, {"kind", kind}};
  };
  const auto perm = [](List axes) { return Attrs{{"perm", std::move(axes)}}; };
  const TensorType x = f32({6, 70, 5, 136});
  const std::vector<Case> all = {
      {"mul", {.inputs = {x, f32({70, 1, 1})}}},
      {"mul", {.inputs = {f32({70, 1, 136}), f32({6, 1, 5, 1})}}},
      {"add", {.inputs = {x, f32({6, 70, 5, 1})}, .accumulate = 1}},
      {"div",
       {.inputs = {f32({6, 1, 5, 1}), f32({1, 70, 1, 136})},
        .fills = {{}, {Fill::Kind::uniform, 0.5, 2}}}},
      {"broadcast_to",
       {.inputs = {f32({6, 1, 5, 136})}, .attrs = {{"shape", List{6, 70, 5, 136}}}}},
      {"broadcast_to",
       {.inputs = {f32({70, 5, 1})}, .attrs = {{"shape", List{6, 70, 5, 136}}}, .accumulate = 1}},
      {"reduce", {.inputs = {x}, .attrs = over({1}, "sum")}},
      {"reduce", {.inputs = {x}, .attrs = over({0, 2}, "mean"), .accumulate = 1}},
      {"reduce", {.inputs = {x}, .attrs = over({1, 3}, "sum")}},
      {"reduce", {.inputs = {x}, .attrs = over({1, 3}, "max")}},
      {"reduce", {.inputs = {x}, .attrs = over({0, 2}, "max")}},
      {"transpose", {.inputs = {x}, .attrs = perm({0, 2, 1, 3})}},
      {"transpose", {.inputs = {x}, .attrs = perm({0, 3, 1, 2})}},
      {"transpose", {.inputs = {x}, .attrs = perm({3, 2, 1, 0}), .accumulate = 1}},
      {"transpose", {.inputs = {f32({130, 67})}, .attrs = perm({1, 0})}},
      {"slice_backward",
       {.inputs = {f32({6, 30, 5, 136})},
        .attrs = {{"axis", int64_t{1}}, {"begin", int64_t{7}}, {"extent", int64_t{70}}},
        .accumulate = 1}},
      {"count_correct",
       {.inputs = {f32({90, 1500}), {{90}, DType::i32}},
        .fills = {{}, {Fill::Kind::labels, -1, 1500}}}},
      {"scale_by", {.inputs = {x, f32({1})}}},
      {"sum_of_squares", {.inputs = {x}}},
      {"map", {.inputs = {x}, .attrs = {{"of", "pow"}, {"a", 3.0}}}},
      {"map_backward", {.inputs = {x, x}, .attrs = {{"of", "pow"}, {"a", 3.0}}}},
      {"max_pool",
       {.inputs = {f32({3, 17, 15, 300})},
        .attrs = {{"kernel", int64_t{3}}, {"stride", int64_t{2}}, {"pad", int64_t{1}}}}},
      {"avg_pool",
       {.inputs = {f32({3, 17, 15, 300})},
        .attrs = {{"kernel", int64_t{3}}, {"stride", int64_t{2}}, {"pad", int64_t{1}}}}}};
  for (const Case& c : all) {
    result.push_back(c);
    result.push_back(in_sixteen_bits(c, DType::bf16));
    result.push_back(in_sixteen_bits(c, DType::f16));
  }
}

std::vector<Case> cases() {
  std::vector<Case> result;
  add_sequences(result);
  for (const char* op : {"conv2d", "conv2d_backward_data", "conv2d_backward_weights"}) {
    for (const uint32_t accumulate : {0u, 1u}) {
      result.push_back(conv(op, {8, 32, 32, 16}, {32, 3, 3, 16}, 1, accumulate));
      result.push_back(conv(op, {8, 32, 32, 32}, {64, 3, 3, 32}, 2, accumulate));
      result.push_back(conv(op, {8, 32, 32, 32}, {64, 1, 1, 32}, 2, accumulate));
      result.push_back(conv(op, {8, 8, 8, 64}, {64, 1, 1, 64}, 1, accumulate));
      result.push_back(conv(op, {4, 9, 7, 5}, {17, 3, 3, 5}, 1, accumulate));
      result.push_back(conv(op, {3, 9, 7, 17}, {3, 3, 3, 17}, 2, accumulate));
    }
  }
  const std::vector<Case> convolutions = result;
  for (const Case& c : convolutions) {
    if (c.op.starts_with("conv2d")) result.push_back(in_sixteen_bits(c, DType::bf16));
  }
  // Larger than what goes through the workspace at once: several turns per call.
  result.push_back(conv("conv2d_backward_data", {13, 64, 64, 32}, {16, 3, 3, 32}, 2, 1));
  result.push_back(in_sixteen_bits(result.back(), DType::bf16));
  for (const char* op : {"batch_norm_stats", "batch_norm", "batch_norm_backward"}) {
    for (const int64_t channels : {1, 3, 5, 17, 64, 100}) {
      result.push_back(batch_norm(op, {7, 15, 33, channels}, 0));
    }
    result.push_back(batch_norm(op, {32, 32, 32, 32}, 0));
    result.push_back(batch_norm(op, {20, 16, 16, 32}, 1000));
  }
  result.push_back(batch_norm("batch_norm_backward", {20, 16, 16, 32}, 0, 7));
  for (const char* op : {"add", "sub", "mul"}) {
    result.push_back({op, {.inputs = {f32({50, 33, 35, 7}), f32({50, 33, 35, 7})}}});
    result.push_back({op, {.inputs = {f32({50, 33, 35, 7}), f32({35, 7})}}});
    result.push_back({op, {.inputs = {f32({1, 7}), f32({50, 33, 35, 7})}}});
    result.push_back({op, {.inputs = {f32({50, 33, 35, 7}), f32({1})}, .accumulate = 1}});
  }
  result.push_back({"matmul", {.inputs = {f32({300, 500}), f32({500, 700})}}});
  result.push_back({"matmul",
                    {.inputs = {f32({300, 128}), f32({300, 10})},
                     .attrs = {{"transpose_a", int64_t{1}}},
                     .accumulate = 1}});
  result.push_back(
      {"matmul",
       {.inputs = {f32({6, 65, 33}), f32({6, 67, 33})}, .attrs = {{"transpose_b", int64_t{1}}}}});
  result.push_back({"bias_act_backward", {.inputs = {f32({5000, 33})}, .accumulate = 2}});
  result.push_back({"softmax", {.inputs = {f32({300, 1037})}}});
  result.push_back({"softmax_backward", {.inputs = {f32({300, 1037}), f32({300, 1037})}}});
  const TensorType labels = {{300}, DType::i32};
  const Fill classes = {Fill::Kind::labels, -1, 1037};
  result.push_back({"softmax_cross_entropy",
                    {.inputs = {f32({300, 1037}), labels, f32({1})},
                     .attrs = {{"label_smoothing", 0.1}},
                     .fills = {{}, classes, {Fill::Kind::uniform, 0.1, 0.2}}}});
  result.push_back({"layer_norm", {.inputs = {f32({400, 333}), f32({333}), f32({333})}}});
  result.push_back(
      {"layer_norm_backward",
       {.inputs = {f32({400, 333}), f32({400}), f32({400}), f32({333}), f32({400, 333})},
        .fills = {{}, {}, {Fill::Kind::uniform, 0.5, 2}},
        .accumulate = 7}});
  // 16-bit numbers go through the workspace in slices of images and blocks of channels.
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (const char* op : {"conv2d", "conv2d_backward_data", "conv2d_backward_weights"}) {
      result.push_back(in_sixteen_bits(conv(op, {4, 8, 8, 128}, {128, 3, 3, 128}, 1), dtype));
    }
  }
  for (const char* op : {"conv2d", "conv2d_backward_data", "conv2d_backward_weights"}) {
    result.push_back(in_sixteen_bits(conv(op, {3, 16, 16, 96}, {160, 1, 1, 96}, 2, 1), DType::f16));
    result.push_back(in_sixteen_bits(conv(op, {3, 4, 4, 64}, {192, 3, 3, 64}, 1, 1), DType::f16));
  }
  // State in 8 bits: gradients of a scaled loss, weights rounded at random, several dtypes.
  for (const DType weight : {DType::f32, DType::f16, DType::bf16}) {
    const Shape w = {16, 3, 3, 17};
    const TensorType codes = {w, DType::u8}, scales = f32({10}), one = f32({1});
    const TensorType key = {{2}, DType::i64};
    const Fill bytes = {Fill::Kind::bytes}, some = {Fill::Kind::uniform, 0.1, 1};
    const Fill keys = {Fill::Kind::labels, 0, 1000};
    const auto attrs = [](const char* rule, bool scaled) {
      return Attrs{{"rule", rule},
                   {"weight_decay", 1e-3},
                   {"scaled", int64_t{scaled}},
                   {"rounding", "stochastic"},
                   {"stream", int64_t{3}}};
    };
    result.push_back({"update_8bit",
                      {.inputs = {{w, weight}, {w, DType::f16}, codes, scales, one, one, key},
                       .attrs = attrs("sgd", true),
                       .fills = {{}, {}, bytes, some, some, some, keys}}});
    result.push_back(
        {"update_8bit",
         {.inputs =
              {{w, weight}, {w, DType::f16}, codes, scales, codes, scales, one, one, one, key},
          .attrs = attrs("adam", true),
          .fills = {{}, {}, bytes, some, bytes, some, some, {Fill::Kind::ones}, some, keys}}});
    result.push_back({"update_8bit",
                      {.inputs = {{w, weight}, codes, one, scales, key},
                       .attrs = attrs("sgd_plain", false),
                       .fills = {{}, bytes, some, some, keys}}});
    result.push_back({"momentum_fold_8bit",
                      {.inputs = {codes, scales, {w, weight}, {{3}, DType::i64}, one},
                       .attrs = {{"scaled", int64_t{1}}, {"stream", int64_t{3}}},
                       .fills = {bytes, some, {}, keys, some}}});
  }
  result.push_back(
      in_sixteen_bits(batch_norm("batch_norm_backward", {20, 16, 16, 32}, 0, 7), DType::f16));
  result.push_back(in_sixteen_bits({"dropout",
                                    {.inputs = {f32({32, 64}), {{3}, DType::i64}},
                                     .attrs = {{"p", 0.3}, {"stream", int64_t{5}}},
                                     .fills = {{}, {Fill::Kind::labels, 0, 1000}}}},
                                   DType::bf16));
  const Attrs across = {{"transpose_a", int64_t{1}}};
  result.push_back(in_sixteen_bits(
      {"matmul", {.inputs = {f32({900, 128}), f32({900, 10})}, .attrs = across, .accumulate = 1}},
      DType::bf16));
  const Shape images = {6, 17, 19, 48};
  const Attrs groups = {{"groups", int64_t{8}}, {"act", std::string("relu")}};
  result.push_back(
      {"group_norm", {.inputs = {f32(images), f32({48}), f32({48})}, .attrs = groups}});
  result.push_back(
      {"group_norm_backward",
       {.inputs = {f32(images), f32({6, 8}), f32({6, 8}), f32({48}), f32({48}), f32(images)},
        .attrs = groups,
        .fills = {{}, {}, {Fill::Kind::uniform, 0.5, 2}}}});
  result.push_back({"dropout",
                    {.inputs = {f32({10001}), {{3}, DType::i64}},
                     .attrs = {{"p", 0.3}, {"stream", int64_t{5}}},
                     .fills = {{}, {Fill::Kind::labels, 0, 1000}}}});
  const Attrs windows = {{"kernel", int64_t{3}}, {"stride", int64_t{2}}, {"pad", int64_t{1}}};
  result.push_back({"max_pool", {.inputs = {f32({4, 33, 31, 17})}, .attrs = windows}});
  result.push_back({"avg_pool", {.inputs = {f32({4, 33, 31, 17})}, .attrs = windows}});
  const std::vector<int64_t> first_two = {0, 1}, last = {2};
  result.push_back(
      {"reduce", {.inputs = {f32({40, 50, 33})}, .attrs = {{"axes", first_two}}, .accumulate = 1}});
  result.push_back(
      {"reduce",
       {.inputs = {f32({40, 50, 33})}, .attrs = {{"axes", last}, {"kind", std::string("mean")}}}});
  const std::vector<int64_t> heads = {0, 2, 1, 3};
  result.push_back({"transpose", {.inputs = {f32({4, 33, 8, 17})}, .attrs = {{"perm", heads}}}});
  result.push_back({"lstm_cell",
                    {.inputs = {f32({64, 96}), f32({64, 80}), f32({64, 80}), f32({320, 96}),
                                f32({320, 80}), f32({320})}}});
  const std::vector<TensorType> layer = {f32({5, 64, 96}), f32({64, 80}),  f32({64, 80}),
                                         f32({320, 96}),   f32({320, 80}), f32({320})};
  const Fill weights = {Fill::Kind::uniform, -0.1, 0.1};
  result.push_back({"lstm_steps", {.inputs = layer, .fills = {{}, {}, {}, weights, weights}}});
  std::vector<TensorType> saved = layer;
  saved.back() = f32({5, 64, 320});
  for (const Shape& shape :
       {Shape{5, 64, 80}, Shape{5, 64, 80}, Shape{64, 80}, Shape{64, 80}, Shape{5, 64, 80}}) {
    saved.push_back(f32(shape));
  }
  const Fill gates = {Fill::Kind::uniform, 0.1, 0.9};
  result.push_back({"lstm_steps_backward",
                    {.inputs = saved,
                     .attrs = {{"needs_dx", int64_t{1}}},
                     .fills = {{}, {}, {}, weights, weights, gates},
                     .accumulate = 0x1c}});
  add_products(result);
  add_layouts(result);
  add_attention(result);
  add_coded(result);
  add_blocks(result);
  return result;
}

class CpuKernels : public testing::TestWithParam<Case> {
 protected:
  const OpDef& op() const { return *find_op(GetParam().op); }
  const Sample& sample() const { return GetParam().sample; }
  std::unique_ptr<Backend> backend_ = make_cpu_backend(0);
};

std::string case_name(const testing::TestParamInfo<Case>& info) {
  return fmt::format("{}_{}", info.param.op, info.index);
}

TEST_P(CpuKernels, MatchTheReference) {
  SCOPED_TRACE(describe(op(), sample()));
  const OpCase op_case = make_case(op(), sample());
  const Kernel& kernel = backend_->kernel(op_case.signature);
  EXPECT_NE(kernel.name, "reference");
  const auto got = run_case(op_case, {.backend = backend_.get()});
  const auto expected = run_case(op_case);
  for (size_t k = 0; k < got.size(); ++k) {
    SCOPED_TRACE(k);
    // A unit in the last place of a 16-bit result: 2^-10 or 2^-7.
    const DType dtype = got[k].type().dtype;
    const double rounding = dtype == DType::f16 ? 1e-3 : dtype == DType::bf16 ? 8e-3 : 0;
    expect_near(got[k], expected[k], std::max(op().tolerance, rounding));
  }
}

TEST_P(CpuKernels, GiveTheSameBitsWhereverTheDataLies) {
  SCOPED_TRACE(describe(op(), sample()));
  check_repeats(op(), sample(), backend_.get());
}

TEST_P(CpuKernels, GiveTheSameBitsInPlace) {
  SCOPED_TRACE(describe(op(), sample()));
  check_in_place(op(), sample(), backend_.get());
}

TEST_P(CpuKernels, GiveTheSameBitsFromAKernelMadeAgain) {
  const OpCase op_case = make_case(op(), sample());
  const auto first = run_case(op_case, {.backend = backend_.get()});
  const auto again = make_cpu_backend(0);
  const auto second = run_case(op_case, {.backend = again.get()});
  for (size_t k = 0; k < first.size(); ++k) EXPECT_TRUE(same_bits(first[k], second[k])) << k;
}

INSTANTIATE_TEST_SUITE_P(Shapes, CpuKernels, testing::ValuesIn(cases()), case_name);

// A kernel's scratch holds panels or slabs of a matrix in few bits, and never all of its numbers.
TEST(CodedMatrices, AreNotDecodedWhole) {
  const std::unique_ptr<Backend> backend = make_cpu_backend(2);
  const CodedMatrix matrix = {CodedFormat::nf4, 1536, 576};
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const int64_t turned : {1, 0}) {
      Sample sample = {.inputs = {{{512, turned != 0 ? 576 : 1536}, dtype}},
                       .attrs = attrs_of(matrix)};
      sample.attrs.set("transpose", turned);
      for (const TensorType& type : matrix.types()) sample.inputs.push_back(type);
      const OpCase op_case = make_case(*find_op("coded_matmul"), sample);
      EXPECT_LT(backend->kernel(op_case.signature).workspace.count, 2 * matrix.elements());
    }
  }
}

// All kinds of numbers: subnormal ones, infinities and NaNs among them.
TEST(SixteenBits, RoundAsTheTypesDo) {
  std::vector<float> numbers;
  for (uint32_t i = 0; i < 1 << 14; ++i) {
    numbers.push_back(std::bit_cast<float>(philox({i}, philox_key(7))[0]));
    numbers.push_back(std::bit_cast<float>(i << 18 | (i & 3u) << 14));
  }
  std::vector<uint16_t> bits(numbers.size());
  narrow(DType::bf16, numbers.data(), std::ssize(numbers), bits.data());
  for (size_t i = 0; i < numbers.size(); ++i) {
    ASSERT_EQ(bits[i], BFloat16(numbers[i]).bits) << numbers[i];
  }
  narrow(DType::f16, numbers.data(), std::ssize(numbers), bits.data());
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (std::isnan(numbers[i])) continue;
    ASSERT_EQ(bits[i], Half(numbers[i]).bits) << numbers[i];
  }
}

// Of equal numbers the first is the largest, nothing is larger than a NaN at the front, and one
// elsewhere is never the largest.
TEST(CountCorrect, TakesTheFirstOfEqualNumbers) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float low = -std::numeric_limits<float>::infinity();
  struct Row {
    std::vector<float> logits;
    int32_t label;
  };
  const std::vector<Row> rows = {
      {{1, 3, 3, 2}, 1},         {{1, 3, 3, 2}, 2},         {{nan, 3, 3, 2}, 0},
      {{nan, 3, 3, 2}, 1},       {{1, nan, 3, 2}, 2},       {{1, nan, 0, 0}, 1},
      {{low, low, low, low}, 0}, {{low, low, low, low}, 2}, {{1, 2, 3, 4}, 4},
      {{1, 2, 3, 4}, -1},        {{4, 4, 4, 4}, 0},         {{nan, nan, nan, nan}, 3}};
  Tensor logits({{std::ssize(rows), 4}, DType::f32});
  Tensor labels({{std::ssize(rows)}, DType::i32});
  for (size_t r = 0; r < rows.size(); ++r) {
    std::ranges::copy(rows[r].logits, logits.ref().as<float>() + 4 * r);
    labels.ref().as<int32_t>()[r] = rows[r].label;
  }
  const OpDef* const op = find_op("count_correct");
  OpCase op_case = make_case(*op, {.inputs = {logits.type(), labels.type()}});
  op_case.inputs = {logits, labels};
  const auto backend = make_cpu_backend(0);
  EXPECT_EQ(run_case(op_case, {.backend = backend.get()})[0].get(0), run_case(op_case)[0].get(0));
  EXPECT_EQ(run_case(op_case)[0].get(0), 5);
}

}  // namespace
}  // namespace thimble
