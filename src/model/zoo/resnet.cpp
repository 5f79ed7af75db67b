// resnet-N and resnet:[a,b,c,d]: pre-activation bottleneck residual nets at 224x224 (He et al.
// 2016), a stem and four stages of the given lengths. The first has `hidden` channels, each further
// one twice as many.
#include <array>
#include <utility>

#include "base/error.h"
#include "base/field.h"
#include "model/layers.h"
#include "model/name.h"

namespace thimble {
namespace {

using Stages = std::array<int64_t, 4>;

constexpr std::array<std::pair<int64_t, Stages>, 5> kNamed = {{{50, {3, 4, 6, 3}},
                                                               {101, {3, 4, 23, 3}},
                                                               {152, {3, 8, 36, 3}},
                                                               {200, {3, 24, 36, 3}},
                                                               {1001, {3, 48, 270, 12}}}};

std::optional<Stages> stages_of(std::string_view name) {
  if (name.starts_with("resnet:")) {
    user_check(name.starts_with("resnet:[") && name.ends_with("]"),
               "'{}' is not resnet:[a,b,c,d], for example resnet:[3,4,6,3]", name);
    const auto numbers = *numbers_after(name.substr(0, name.size() - 1), "resnet:[", ',');
    user_check(numbers.size() == 4, "'{}': a resnet has four stages, not {}", name, numbers.size());
    Stages stages{};
    for (size_t i = 0; i < 4; ++i) {
      user_check(numbers[i] >= 1 && numbers[i] <= 10000,
                 "'{}': a stage has 1 to 10000 blocks, not {}", name, numbers[i]);
      stages[i] = numbers[i];
    }
    return stages;
  }
  const auto numbers = numbers_after(name, "resnet-", '-');
  if (!numbers) return std::nullopt;
  for (const auto& [depth, stages] : kNamed) {
    if (numbers->size() == 1 && (*numbers)[0] == depth) return stages;
  }
  user_error(
      "there is no '{}'; known: resnet-50, -101, -152, -200, -1001; or give the stages, as "
      "resnet:[3,4,6,3]",
      name);
}

bool matches(std::string_view name) { return stages_of(name).has_value(); }

struct Resnet {
  int64_t hidden = 256;
};

void fields(ModelOptions& options, Fields& list) {
  list_hidden(own_of<Resnet>(options).hidden, list, "channels of the first stage, a multiple of 4",
              4);
  list_norm(options, list);
}

ValueId bottleneck(Layers& net, ValueId x, int64_t out, int64_t stride) {
  const auto [first, skip] = net.pre_activated(x, out, stride);
  ValueId y = net.conv("conv1", first, out / 4, 1);
  y = net.conv("conv2", net.norm("bn2", y, "relu"), out / 4, 3, stride);
  y = net.conv("conv3", net.norm("bn3", y, "relu"), out, 1);
  return net.build().op("add", {y, skip});
}

Model build(const ModelOptions& options) {
  const Stages stages = *stages_of(options.name);
  const int64_t width = own_of<Resnet>(options).hidden;
  user_check(width % 4 == 0,
             "a resnet narrows its channels to a quarter: --hidden must be a multiple of 4, not {}",
             width);
  Layers net(options);
  Builder& b = net.build();
  ValueId x = net.conv("stem", net.images(), width / 4, 7, 2, 3);
  x = net.norm("stem.bn", x, "relu");
  x = b.op("max_pool", {x}, {{"kernel", int64_t{3}}, {"stride", int64_t{2}}, {"pad", int64_t{1}}});
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    for (int64_t i = 0; i < stages[stage]; ++i) {
      const Builder::Scope scope(b, fmt::format("stage{}.block{}", stage + 1, i + 1));
      x = bottleneck(net, x, width << stage, stage > 0 && i == 0 ? 2 : 1);
    }
  }
  x = b.op("global_avg_pool", {net.norm("bn", x, "relu")});
  return net.classify(x);
}

}  // namespace

extern const ModelFamily family_resnet{
    .pattern = "resnet-N, resnet:[a,b,c,d]",
    .summary =
        "pre-activation bottleneck ResNet at 224x224 (N = 50, 101, 152, 200, "
        "1001, or four stage lengths)",
    .matches = matches,
    .batch = 32,
    .image = {224, 224, 3},
    .classes = 1000,
    .fields = fields,
    .build = build,
    .data = "generated"};

}  // namespace thimble
