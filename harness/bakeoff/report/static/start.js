window.bakeoff.startMatrix();
window.bakeoff.startLimits();
window.bakeoff.startQueries();
window.bakeoff.startExports();
window.bakeoff.startCharts();
